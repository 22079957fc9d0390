"""Rights and users: what Kafka's own tools ask about them.

Rights are those of Redis, and are given there. Users of the gateway are what `lakelog gateway
users` knows, by the rights to change them that the client's user of Redis has.
"""

from __future__ import annotations

from ..errors import LakelogError
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from .sasl import Kind
from .scram import HASHES, ScramCredential
from .session import Session
from .users import ScramUsers, check_name

_Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion

_RIGHTS_ELSEWHERE = (
    "rights are those of users of Redis: `lakelog acl ROLE --topic TOPIC` prints the command that "
    "gives them"
)

_NO_SAY = (
    "users of the gateway have no say over each other: log in by PLAIN as a user of Redis that is "
    "an admin, or use `lakelog gateway users`"
)

#: ``ScramMechanism`` of Kafka, by number.
_MECHANISMS = dict(enumerate(HASHES, start=1))
_NUMBERS = {name: number for number, name in _MECHANISMS.items()}


async def describe_acls(
    session: Session, request: DescribeAclsRequest, version: int
) -> DescribeAclsResponse:
    """Where rights are to be looked at."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=_RIGHTS_ELSEWHERE
    )


async def create_acls(
    session: Session, request: CreateAclsRequest, version: int
) -> CreateAclsResponse:
    """Where rights are to be given."""
    result = CreateAclsResponse.AclCreationResult(ErrorCode.SECURITY_DISABLED, _RIGHTS_ELSEWHERE)
    return CreateAclsResponse(results=[result for _ in request.creations])


async def delete_acls(
    session: Session, request: DeleteAclsRequest, version: int
) -> DeleteAclsResponse:
    """Where rights are to be taken."""
    result = DeleteAclsResponse.DeleteAclsFilterResult(
        ErrorCode.SECURITY_DISABLED, _RIGHTS_ELSEWHERE
    )
    return DeleteAclsResponse(filter_results=[result for _ in request.filters])


async def describe_user_scram_credentials(
    session: Session, request: DescribeUserScramCredentialsRequest, version: int
) -> DescribeUserScramCredentialsResponse:
    """The users of the gateway; without what is kept of their passwords."""
    response = DescribeUserScramCredentialsResponse
    if _has_no_say(session):
        return response(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=_NO_SAY)
    try:
        found = await session.log.run(_users(session).list)
    except LakelogError as error:
        return response(error_code=code_of(error, Asked.CLUSTER), error_message=error.message)
    named = [one.name for one in request.users or ()]
    result = response.DescribeUserScramCredentialsResult
    told: dict[str, list[DescribeUserScramCredentialsResponse.CredentialInfo]] = {}
    for user in found:
        info = response.CredentialInfo(_NUMBERS[user.mechanism], user.iterations)
        told.setdefault(user.name, []).append(info)
    return response(
        results=[
            result(name, ErrorCode.NONE, None, told[name])
            if name in told
            else result(name, ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name!r}")
            for name in dict.fromkeys(named or told)
        ]
    )


async def alter_user_scram_credentials(
    session: Session, request: AlterUserScramCredentialsRequest, version: int
) -> AlterUserScramCredentialsResponse:
    """Makes users of the gateway, gives them other passwords, and deletes them; each for itself."""
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    changes: list[_Deletion | _Upsertion] = [*request.deletions, *request.upsertions]
    told = {change.name: result(change.name, ErrorCode.NONE, None) for change in changes}
    for change in changes:
        answer = told[change.name]
        mechanism = _MECHANISMS.get(change.mechanism)
        if _has_no_say(session):
            answer.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            answer.error_message = _NO_SAY
        elif mechanism is None:
            answer.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answer.error_message = f"mechanisms are {' and '.join(HASHES)}"
        else:
            try:
                answer.error_code, answer.error_message = await _altered(session, change, mechanism)
            except LakelogError as error:
                answer.error_code = code_of(error, Asked.CLUSTER)
                answer.error_message = error.message
                session.note(f"changing user {change.name!r}", error)
    return AlterUserScramCredentialsResponse(results=list(told.values()))


async def _altered(
    session: Session, change: _Deletion | _Upsertion, mechanism: str
) -> tuple[ErrorCode, str | None]:
    users, name = _users(session), change.name
    if isinstance(change, _Deletion):
        if await session.log.run(users.delete, name, [mechanism]):
            return ErrorCode.NONE, None
        return ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name!r} with {mechanism}"
    check_name(name)
    credential = ScramCredential.of_salted(
        mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
    )
    await session.log.run(users.put, {(mechanism, name): credential})
    return ErrorCode.NONE, None


def _has_no_say(session: Session) -> bool:
    """Whether its rights are those that it shares with all users of the gateway."""
    return session.principal is not None and session.principal.kind is Kind.GATEWAY


def _users(session: Session) -> ScramUsers:
    return ScramUsers(session.log.lake.hot)
