"""Kafka's messages, generated from its definitions: do not edit, run ``generate.py``.

A class is a request, a response, or, within one of those, a struct of it; the number beside a field
is the version that brought it or those that have it, if not all do. The functions below a message
read and write it, named by the first version of a layout: those of ``unpack_ih`` and ``pack_ih``
take an int32 and an int16, ``u`` is a uuid, ``t`` a truth value, and ``x`` the empty tagged fields
after them.

From the message definitions of Apache Kafka 4.1.1, which are

    Copyright The Apache Software Foundation, licensed to it under one or more contributor license
    agreements, and by it under the Apache License, Version 2.0; you may obtain a copy of the
    License at http://www.apache.org/licenses/LICENSE-2.0
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from uuid import UUID

from msgspec import field

from .primitives import (
    NO_TAGS,
    ZERO_UUID,
    Api,
    ApiMessage,
    Buffer,
    Message,
    Records,
    pack_array,
    pack_bytes,
    pack_compact_array,
    pack_compact_bytes,
    pack_compact_nullable_array,
    pack_compact_nullable_numbers,
    pack_compact_nullable_string,
    pack_compact_numbers,
    pack_compact_string,
    pack_nullable_array,
    pack_nullable_string,
    pack_number,
    pack_numbers,
    pack_string,
    pack_tags,
    pack_uuid,
    read_array,
    read_bytes,
    read_compact_array,
    read_compact_bytes,
    read_compact_nullable_array,
    read_compact_nullable_numbers,
    read_compact_nullable_records,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_records,
    read_compact_string,
    read_nullable_array,
    read_nullable_records,
    read_nullable_string,
    read_nullable_struct,
    read_number,
    read_numbers,
    read_string,
    read_tag,
    read_tags,
    read_uuid,
    since,
    skip_tags,
    uuid_of,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_records,
    write_compact_records,
    write_nullable_array,
    write_nullable_records,
    write_nullable_struct,
    written,
)

pack_b = Struct(">b").pack
pack_bb = Struct(">bb").pack
pack_bbx = Struct(">bbx").pack
pack_bi = Struct(">bi").pack
pack_bix = Struct(">bix").pack
pack_bx = Struct(">bx").pack
pack_d = Struct(">d").pack
pack_dt = Struct(">d?").pack
pack_dtx = Struct(">d?x").pack
pack_dx = Struct(">dx").pack
pack_h = Struct(">h").pack
pack_hhh = Struct(">hhh").pack
pack_hhhx = Struct(">hhhx").pack
pack_hhx = Struct(">hhx").pack
pack_hi = Struct(">hi").pack
pack_hii = Struct(">hii").pack
pack_hiii = Struct(">hiii").pack
pack_hiiq = Struct(">hiiq").pack
pack_hiiqx = Struct(">hiiqx").pack
pack_hx = Struct(">hx").pack
pack_i = Struct(">i").pack
pack_ib = Struct(">ib").pack
pack_ih = Struct(">ih").pack
pack_ihi = Struct(">ihi").pack
pack_ihqh = Struct(">ihqh").pack
pack_ihqhx = Struct(">ihqhx").pack
pack_ihqq = Struct(">ihqq").pack
pack_ihqqi = Struct(">ihqqi").pack
pack_ihqqix = Struct(">ihqqix").pack
pack_ihqqq = Struct(">ihqqq").pack
pack_ihui = Struct(">ih16si").pack
pack_ihx = Struct(">ihx").pack
pack_ii = Struct(">ii").pack
pack_iii = Struct(">iii").pack
pack_iiibii = Struct(">iiibii").pack
pack_iiiib = Struct(">iiiib").pack
pack_iiiibii = Struct(">iiiibii").pack
pack_iiiiii = Struct(">iiiiii").pack
pack_iiix = Struct(">iiix").pack
pack_iiq = Struct(">iiq").pack
pack_iiqiqi = Struct(">iiqiqi").pack
pack_iiqiqix = Struct(">iiqiqix").pack
pack_iiqqi = Struct(">iiqqi").pack
pack_iiqx = Struct(">iiqx").pack
pack_iit = Struct(">ii?").pack
pack_iix = Struct(">iix").pack
pack_iq = Struct(">iq").pack
pack_iqh = Struct(">iqh").pack
pack_iqhx = Struct(">iqhx").pack
pack_iqi = Struct(">iqi").pack
pack_iqih = Struct(">iqih").pack
pack_iqqh = Struct(">iqqh").pack
pack_iqqi = Struct(">iqqi").pack
pack_iqqt = Struct(">iqq?").pack
pack_iqqtx = Struct(">iqq?x").pack
pack_iqx = Struct(">iqx").pack
pack_it = Struct(">i?").pack
pack_ith = Struct(">i?h").pack
pack_itx = Struct(">i?x").pack
pack_ix = Struct(">ix").pack
pack_q = Struct(">q").pack
pack_qiiqiqx = Struct(">qiiqiqx").pack
pack_qix = Struct(">qix").pack
pack_qq = Struct(">qq").pack
pack_qqhx = Struct(">qqhx").pack
pack_qqx = Struct(">qqx").pack
pack_qx = Struct(">qx").pack
pack_t = Struct(">?").pack
pack_tbt = Struct(">?b?").pack
pack_tbtx = Struct(">?b?x").pack
pack_tbx = Struct(">?bx").pack
pack_tt = Struct(">??").pack
pack_ttt = Struct(">???").pack
pack_tttx = Struct(">???x").pack
pack_ttx = Struct(">??x").pack
pack_tx = Struct(">?x").pack
pack_u = Struct(">16s").pack
pack_uh = Struct(">16sh").pack
pack_ut = Struct(">16s?").pack
pack_ux = Struct(">16sx").pack
unpack_b = Struct(">b").unpack_from
unpack_bb = Struct(">bb").unpack_from
unpack_bi = Struct(">bi").unpack_from
unpack_d = Struct(">d").unpack_from
unpack_dt = Struct(">d?").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_hhh = Struct(">hhh").unpack_from
unpack_hi = Struct(">hi").unpack_from
unpack_hii = Struct(">hii").unpack_from
unpack_hiii = Struct(">hiii").unpack_from
unpack_hiiq = Struct(">hiiq").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ib = Struct(">ib").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihi = Struct(">ihi").unpack_from
unpack_ihqh = Struct(">ihqh").unpack_from
unpack_ihqq = Struct(">ihqq").unpack_from
unpack_ihqqi = Struct(">ihqqi").unpack_from
unpack_ihqqq = Struct(">ihqqq").unpack_from
unpack_ihui = Struct(">ih16si").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iii = Struct(">iii").unpack_from
unpack_iiibii = Struct(">iiibii").unpack_from
unpack_iiiib = Struct(">iiiib").unpack_from
unpack_iiiibii = Struct(">iiiibii").unpack_from
unpack_iiiiii = Struct(">iiiiii").unpack_from
unpack_iiq = Struct(">iiq").unpack_from
unpack_iiqiqi = Struct(">iiqiqi").unpack_from
unpack_iiqqi = Struct(">iiqqi").unpack_from
unpack_iit = Struct(">ii?").unpack_from
unpack_iq = Struct(">iq").unpack_from
unpack_iqh = Struct(">iqh").unpack_from
unpack_iqi = Struct(">iqi").unpack_from
unpack_iqih = Struct(">iqih").unpack_from
unpack_iqqh = Struct(">iqqh").unpack_from
unpack_iqqi = Struct(">iqqi").unpack_from
unpack_iqqt = Struct(">iqq?").unpack_from
unpack_it = Struct(">i?").unpack_from
unpack_ith = Struct(">i?h").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qi = Struct(">qi").unpack_from
unpack_qiiqiq = Struct(">qiiqiq").unpack_from
unpack_qq = Struct(">qq").unpack_from
unpack_qqh = Struct(">qqh").unpack_from
unpack_t = Struct(">?").unpack_from
unpack_tb = Struct(">?b").unpack_from
unpack_tbt = Struct(">?b?").unpack_from
unpack_tt = Struct(">??").unpack_from
unpack_ttt = Struct(">???").unpack_from
unpack_u = Struct(">16s").unpack_from
unpack_uh = Struct(">16sh").unpack_from
unpack_ut = Struct(">16s?").unpack_from


# -- 0: Produce --------------------------------------------------------------------------------


class ProduceRequest(ApiMessage):
    """API key 0, the request, versions 3-12."""

    class PartitionProduceData(Message):
        index: int = 0
        records: Buffer | None = b""

    class TopicProduceData(Message):
        name: str = ""
        partition_data: Sequence[ProduceRequest.PartitionProduceData] = ()

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: Sequence[ProduceRequest.TopicProduceData] = ()


def _read_produce_request_partition_produce_data_3(b, p):
    (index,) = unpack_i(b, p)
    records, p = read_nullable_records(b, p + 4)
    return ProduceRequest.PartitionProduceData(index, records), p


def _read_produce_request_topic_produce_data_3(b, p):
    name, p = read_string(b, p)
    partition_data, p = read_array(b, p, 8, _read_produce_request_partition_produce_data_3)
    return ProduceRequest.TopicProduceData(name, partition_data), p


def _read_produce_request_3(b, p):
    transactional_id, p = read_nullable_string(b, p)
    acks, timeout_ms = unpack_hi(b, p)
    topic_data, p = read_array(b, p + 6, 6, _read_produce_request_topic_produce_data_3)
    return ProduceRequest(transactional_id, acks, timeout_ms, topic_data), p


def _read_produce_request_partition_produce_data_9(b, p):
    (index,) = unpack_i(b, p)
    records, p = read_compact_nullable_records(b, p + 4)
    return ProduceRequest.PartitionProduceData(index, records), skip_tags(b, p)


def _read_produce_request_topic_produce_data_9(b, p):
    name, p = read_compact_string(b, p)
    partition_data, p = read_compact_array(b, p, 6, _read_produce_request_partition_produce_data_9)
    return ProduceRequest.TopicProduceData(name, partition_data), skip_tags(b, p)


def _read_produce_request_9(b, p):
    transactional_id, p = read_compact_nullable_string(b, p)
    acks, timeout_ms = unpack_hi(b, p)
    topic_data, p = read_compact_array(b, p + 6, 3, _read_produce_request_topic_produce_data_9)
    return ProduceRequest(transactional_id, acks, timeout_ms, topic_data), skip_tags(b, p)


def _write_produce_request_partition_produce_data_3(w, o):
    w(pack_i(o.index))
    write_nullable_records(w, o.records)


def _write_produce_request_topic_produce_data_3(w, o):
    w(pack_string(o.name))
    write_array(w, o.partition_data, _write_produce_request_partition_produce_data_3)


def _write_produce_request_3(w, o):
    w(pack_nullable_string(o.transactional_id) + pack_hi(o.acks, o.timeout_ms))
    write_array(w, o.topic_data, _write_produce_request_topic_produce_data_3)


def _write_produce_request_partition_produce_data_9(w, o):
    w(pack_i(o.index))
    write_compact_nullable_records(w, o.records)
    w(NO_TAGS)


def _write_produce_request_topic_produce_data_9(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(w, o.partition_data, _write_produce_request_partition_produce_data_9)
    w(NO_TAGS)


def _write_produce_request_9(w, o):
    w(pack_compact_nullable_string(o.transactional_id) + pack_hi(o.acks, o.timeout_ms))
    write_compact_array(w, o.topic_data, _write_produce_request_topic_produce_data_9)
    w(NO_TAGS)


ProduceRequest.readers = since(12, {3: _read_produce_request_3, 9: _read_produce_request_9})
ProduceRequest.writers = since(12, {3: _write_produce_request_3, 9: _write_produce_request_9})


class ProduceResponse(ApiMessage):
    """API key 0, the response, versions 3-12."""

    class BatchIndexAndErrorMessage(Message):
        batch_index: int = 0  # 8+
        batch_index_error_message: str | None = None  # 8+

    class LeaderIdAndEpoch(Message):
        leader_id: int = -1  # 10+
        leader_epoch: int = -1  # 10+

    class PartitionProduceResponse(Message):
        index: int = 0
        error_code: int = 0
        base_offset: int = 0
        log_append_time_ms: int = -1
        log_start_offset: int = -1  # 5+
        record_errors: Sequence[ProduceResponse.BatchIndexAndErrorMessage] = ()  # 8+
        error_message: str | None = None  # 8+
        current_leader: ProduceResponse.LeaderIdAndEpoch | None = None  # 10+

    class TopicProduceResponse(Message):
        name: str = ""
        partition_responses: Sequence[ProduceResponse.PartitionProduceResponse] = ()

    class NodeEndpoint(Message):
        node_id: int = 0  # 10+
        host: str = ""  # 10+
        port: int = 0  # 10+
        rack: str | None = None  # 10+

    responses: Sequence[ProduceResponse.TopicProduceResponse] = ()
    throttle_time_ms: int = 0
    node_endpoints: Sequence[ProduceResponse.NodeEndpoint] = ()  # 10+


def _read_produce_response_partition_produce_response_3(b, p):
    index, error_code, base_offset, log_append_time_ms = unpack_ihqq(b, p)
    return ProduceResponse.PartitionProduceResponse(
        index, error_code, base_offset, log_append_time_ms
    ), p + 22


def _read_produce_response_topic_produce_response_3(b, p):
    name, p = read_string(b, p)
    partition_responses, p = read_array(
        b, p, 22, _read_produce_response_partition_produce_response_3
    )
    return ProduceResponse.TopicProduceResponse(name, partition_responses), p


def _read_produce_response_3(b, p):
    responses, p = read_array(b, p, 6, _read_produce_response_topic_produce_response_3)
    (throttle_time_ms,) = unpack_i(b, p)
    return ProduceResponse(responses, throttle_time_ms), p + 4


def _read_produce_response_partition_produce_response_5(b, p):
    index, error_code, base_offset, log_append_time_ms, log_start_offset = unpack_ihqqq(b, p)
    return ProduceResponse.PartitionProduceResponse(
        index, error_code, base_offset, log_append_time_ms, log_start_offset
    ), p + 30


def _read_produce_response_topic_produce_response_5(b, p):
    name, p = read_string(b, p)
    partition_responses, p = read_array(
        b, p, 30, _read_produce_response_partition_produce_response_5
    )
    return ProduceResponse.TopicProduceResponse(name, partition_responses), p


def _read_produce_response_5(b, p):
    responses, p = read_array(b, p, 6, _read_produce_response_topic_produce_response_5)
    (throttle_time_ms,) = unpack_i(b, p)
    return ProduceResponse(responses, throttle_time_ms), p + 4


def _read_produce_response_batch_index_and_error_message_8(b, p):
    (batch_index,) = unpack_i(b, p)
    batch_index_error_message, p = read_nullable_string(b, p + 4)
    return ProduceResponse.BatchIndexAndErrorMessage(batch_index, batch_index_error_message), p


def _read_produce_response_partition_produce_response_8(b, p):
    index, error_code, base_offset, log_append_time_ms, log_start_offset = unpack_ihqqq(b, p)
    record_errors, p = read_array(
        b, p + 30, 6, _read_produce_response_batch_index_and_error_message_8
    )
    error_message, p = read_nullable_string(b, p)
    return ProduceResponse.PartitionProduceResponse(
        index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors,
        error_message
    ), p


def _read_produce_response_topic_produce_response_8(b, p):
    name, p = read_string(b, p)
    partition_responses, p = read_array(
        b, p, 36, _read_produce_response_partition_produce_response_8
    )
    return ProduceResponse.TopicProduceResponse(name, partition_responses), p


def _read_produce_response_8(b, p):
    responses, p = read_array(b, p, 6, _read_produce_response_topic_produce_response_8)
    (throttle_time_ms,) = unpack_i(b, p)
    return ProduceResponse(responses, throttle_time_ms), p + 4


def _read_produce_response_batch_index_and_error_message_9(b, p):
    (batch_index,) = unpack_i(b, p)
    batch_index_error_message, p = read_compact_nullable_string(b, p + 4)
    return ProduceResponse.BatchIndexAndErrorMessage(
        batch_index, batch_index_error_message
    ), skip_tags(b, p)


def _read_produce_response_partition_produce_response_9(b, p):
    index, error_code, base_offset, log_append_time_ms, log_start_offset = unpack_ihqqq(b, p)
    record_errors, p = read_compact_array(
        b, p + 30, 6, _read_produce_response_batch_index_and_error_message_9
    )
    error_message, p = read_compact_nullable_string(b, p)
    return ProduceResponse.PartitionProduceResponse(
        index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors,
        error_message
    ), skip_tags(b, p)


def _read_produce_response_topic_produce_response_9(b, p):
    name, p = read_compact_string(b, p)
    partition_responses, p = read_compact_array(
        b, p, 33, _read_produce_response_partition_produce_response_9
    )
    return ProduceResponse.TopicProduceResponse(name, partition_responses), skip_tags(b, p)


def _read_produce_response_9(b, p):
    responses, p = read_compact_array(b, p, 3, _read_produce_response_topic_produce_response_9)
    (throttle_time_ms,) = unpack_i(b, p)
    return ProduceResponse(responses, throttle_time_ms), skip_tags(b, p + 4)


def _read_produce_response_leader_id_and_epoch_10(b, p):
    leader_id, leader_epoch = unpack_ii(b, p)
    return ProduceResponse.LeaderIdAndEpoch(leader_id, leader_epoch), skip_tags(b, p + 8)


def _read_produce_response_partition_produce_response_10(b, p):
    index, error_code, base_offset, log_append_time_ms, log_start_offset = unpack_ihqqq(b, p)
    record_errors, p = read_compact_array(
        b, p + 30, 6, _read_produce_response_batch_index_and_error_message_9
    )
    error_message, p = read_compact_nullable_string(b, p)
    tags, p = read_tags(b, p)
    current_leader = read_tag(
        tags[0], _read_produce_response_leader_id_and_epoch_10
    ) if 0 in tags else None
    return ProduceResponse.PartitionProduceResponse(
        index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors,
        error_message, current_leader
    ), p


def _read_produce_response_topic_produce_response_10(b, p):
    name, p = read_compact_string(b, p)
    partition_responses, p = read_compact_array(
        b, p, 33, _read_produce_response_partition_produce_response_10
    )
    return ProduceResponse.TopicProduceResponse(name, partition_responses), skip_tags(b, p)


def _read_produce_response_node_endpoint_10(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    return ProduceResponse.NodeEndpoint(node_id, host, port, rack), skip_tags(b, p)


def _read_produce_response_10(b, p):
    responses, p = read_compact_array(b, p, 3, _read_produce_response_topic_produce_response_10)
    (throttle_time_ms,) = unpack_i(b, p)
    tags, p = read_tags(b, p + 4)
    node_endpoints = read_tag(
        tags[0], read_compact_array, 11, _read_produce_response_node_endpoint_10
    ) if 0 in tags else ()
    return ProduceResponse(responses, throttle_time_ms, node_endpoints), p


def _write_produce_response_partition_produce_response_3(w, o):
    w(pack_ihqq(o.index, o.error_code, o.base_offset, o.log_append_time_ms))


def _write_produce_response_topic_produce_response_3(w, o):
    w(pack_string(o.name))
    write_array(w, o.partition_responses, _write_produce_response_partition_produce_response_3)


def _write_produce_response_3(w, o):
    write_array(w, o.responses, _write_produce_response_topic_produce_response_3)
    w(pack_i(o.throttle_time_ms))


def _write_produce_response_partition_produce_response_5(w, o):
    w(pack_ihqqq(o.index, o.error_code, o.base_offset, o.log_append_time_ms, o.log_start_offset))


def _write_produce_response_topic_produce_response_5(w, o):
    w(pack_string(o.name))
    write_array(w, o.partition_responses, _write_produce_response_partition_produce_response_5)


def _write_produce_response_5(w, o):
    write_array(w, o.responses, _write_produce_response_topic_produce_response_5)
    w(pack_i(o.throttle_time_ms))


def _write_produce_response_batch_index_and_error_message_8(w, o):
    w(pack_i(o.batch_index) + pack_nullable_string(o.batch_index_error_message))


def _write_produce_response_partition_produce_response_8(w, o):
    w(pack_ihqqq(o.index, o.error_code, o.base_offset, o.log_append_time_ms, o.log_start_offset))
    write_array(w, o.record_errors, _write_produce_response_batch_index_and_error_message_8)
    w(pack_nullable_string(o.error_message))


def _write_produce_response_topic_produce_response_8(w, o):
    w(pack_string(o.name))
    write_array(w, o.partition_responses, _write_produce_response_partition_produce_response_8)


def _write_produce_response_8(w, o):
    write_array(w, o.responses, _write_produce_response_topic_produce_response_8)
    w(pack_i(o.throttle_time_ms))


def _write_produce_response_batch_index_and_error_message_9(w, o):
    w(pack_i(o.batch_index) + pack_compact_nullable_string(o.batch_index_error_message) + NO_TAGS)


def _write_produce_response_partition_produce_response_9(w, o):
    w(pack_ihqqq(o.index, o.error_code, o.base_offset, o.log_append_time_ms, o.log_start_offset))
    write_compact_array(w, o.record_errors, _write_produce_response_batch_index_and_error_message_9)
    w(pack_compact_nullable_string(o.error_message) + NO_TAGS)


def _write_produce_response_topic_produce_response_9(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partition_responses, _write_produce_response_partition_produce_response_9
    )
    w(NO_TAGS)


def _write_produce_response_9(w, o):
    write_compact_array(w, o.responses, _write_produce_response_topic_produce_response_9)
    w(pack_ix(o.throttle_time_ms))


def _write_produce_response_leader_id_and_epoch_10(w, o):
    w(pack_iix(o.leader_id, o.leader_epoch))


def _write_produce_response_partition_produce_response_10(w, o):
    w(pack_ihqqq(o.index, o.error_code, o.base_offset, o.log_append_time_ms, o.log_start_offset))
    write_compact_array(w, o.record_errors, _write_produce_response_batch_index_and_error_message_9)
    w(pack_compact_nullable_string(o.error_message))
    tags = []
    if o.current_leader is not None:
        tags.append((0, written(_write_produce_response_leader_id_and_epoch_10, o.current_leader)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_produce_response_topic_produce_response_10(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partition_responses, _write_produce_response_partition_produce_response_10
    )
    w(NO_TAGS)


def _write_produce_response_node_endpoint_10(w, o):
    w(
        pack_i(o.node_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + NO_TAGS
    )


def _write_produce_response_10(w, o):
    write_compact_array(w, o.responses, _write_produce_response_topic_produce_response_10)
    w(pack_i(o.throttle_time_ms))
    tags = []
    if o.node_endpoints:
        tags.append((0,
            written(write_compact_array, o.node_endpoints, _write_produce_response_node_endpoint_10)
        ))
    w(pack_tags(tags) if tags else NO_TAGS)


ProduceResponse.readers = since(12, {
    3: _read_produce_response_3, 5: _read_produce_response_5, 8: _read_produce_response_8, 9:
    _read_produce_response_9, 10: _read_produce_response_10
})
ProduceResponse.writers = since(12, {
    3: _write_produce_response_3, 5: _write_produce_response_5, 8: _write_produce_response_8, 9:
    _write_produce_response_9, 10: _write_produce_response_10
})


# -- 1: Fetch ----------------------------------------------------------------------------------


class FetchRequest(ApiMessage):
    """API key 1, the request, versions 4-17."""

    class ReplicaState(Message):
        replica_id: int = -1  # 15+
        replica_epoch: int = -1  # 15+

    class FetchPartition(Message):
        partition: int = 0
        current_leader_epoch: int = -1  # 9+
        fetch_offset: int = 0
        last_fetched_epoch: int = -1  # 12+
        log_start_offset: int = -1  # 5+
        partition_max_bytes: int = 0
        replica_directory_id: UUID = ZERO_UUID  # 17+

    class FetchTopic(Message):
        topic: str = ""  # 4-12
        topic_id: UUID = ZERO_UUID  # 13+
        partitions: Sequence[FetchRequest.FetchPartition] = ()

    class ForgottenTopic(Message):
        topic: str = ""  # 7-12
        topic_id: UUID = ZERO_UUID  # 13+
        partitions: Sequence[int] = ()  # 7+

    cluster_id: str | None = None  # 12+
    replica_id: int = -1  # 4-14
    replica_state: FetchRequest.ReplicaState | None = None  # 15+
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0  # 7+
    session_epoch: int = -1  # 7+
    topics: Sequence[FetchRequest.FetchTopic] = ()
    forgotten_topics_data: Sequence[FetchRequest.ForgottenTopic] = ()  # 7+
    rack_id: str = ""  # 11+


def _read_fetch_request_fetch_partition_4(b, p):
    partition, fetch_offset, partition_max_bytes = unpack_iqi(b, p)
    return FetchRequest.FetchPartition(
        partition, -1, fetch_offset, -1, -1, partition_max_bytes
    ), p + 16


def _read_fetch_request_fetch_topic_4(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 16, _read_fetch_request_fetch_partition_4)
    return FetchRequest.FetchTopic(topic, ZERO_UUID, partitions), p


def _read_fetch_request_4(b, p):
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = unpack_iiiib(b, p)
    topics, p = read_array(b, p + 17, 6, _read_fetch_request_fetch_topic_4)
    return FetchRequest(
        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, 0, -1, topics
    ), p


def _read_fetch_request_fetch_partition_5(b, p):
    partition, fetch_offset, log_start_offset, partition_max_bytes = unpack_iqqi(b, p)
    return FetchRequest.FetchPartition(
        partition, -1, fetch_offset, -1, log_start_offset, partition_max_bytes
    ), p + 24


def _read_fetch_request_fetch_topic_5(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 24, _read_fetch_request_fetch_partition_5)
    return FetchRequest.FetchTopic(topic, ZERO_UUID, partitions), p


def _read_fetch_request_5(b, p):
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = unpack_iiiib(b, p)
    topics, p = read_array(b, p + 17, 6, _read_fetch_request_fetch_topic_5)
    return FetchRequest(
        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, 0, -1, topics
    ), p


def _read_fetch_request_forgotten_topic_7(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_numbers(b, p, "i")
    return FetchRequest.ForgottenTopic(topic, ZERO_UUID, partitions), p


def _read_fetch_request_7(b, p):
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiiibii(b, p)
    topics, p = read_array(b, p + 25, 6, _read_fetch_request_fetch_topic_5)
    forgotten_topics_data, p = read_array(b, p, 6, _read_fetch_request_forgotten_topic_7)
    return FetchRequest(
        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
        session_epoch, topics, forgotten_topics_data
    ), p


def _read_fetch_request_fetch_partition_9(b, p):
    (
        partition, current_leader_epoch, fetch_offset, log_start_offset, partition_max_bytes
    ) = unpack_iiqqi(b, p)
    return FetchRequest.FetchPartition(
        partition, current_leader_epoch, fetch_offset, -1, log_start_offset, partition_max_bytes
    ), p + 28


def _read_fetch_request_fetch_topic_9(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 28, _read_fetch_request_fetch_partition_9)
    return FetchRequest.FetchTopic(topic, ZERO_UUID, partitions), p


def _read_fetch_request_9(b, p):
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiiibii(b, p)
    topics, p = read_array(b, p + 25, 6, _read_fetch_request_fetch_topic_9)
    forgotten_topics_data, p = read_array(b, p, 6, _read_fetch_request_forgotten_topic_7)
    return FetchRequest(
        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
        session_epoch, topics, forgotten_topics_data
    ), p


def _read_fetch_request_11(b, p):
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiiibii(b, p)
    topics, p = read_array(b, p + 25, 6, _read_fetch_request_fetch_topic_9)
    forgotten_topics_data, p = read_array(b, p, 6, _read_fetch_request_forgotten_topic_7)
    rack_id, p = read_string(b, p)
    return FetchRequest(
        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
        session_epoch, topics, forgotten_topics_data, rack_id
    ), p


def _read_fetch_request_fetch_partition_12(b, p):
    (
        partition, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset,
        partition_max_bytes
    ) = unpack_iiqiqi(b, p)
    return FetchRequest.FetchPartition(
        partition, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset,
        partition_max_bytes
    ), skip_tags(b, p + 32)


def _read_fetch_request_fetch_topic_12(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_array(b, p, 33, _read_fetch_request_fetch_partition_12)
    return FetchRequest.FetchTopic(topic, ZERO_UUID, partitions), skip_tags(b, p)


def _read_fetch_request_forgotten_topic_12(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_numbers(b, p, "i")
    return FetchRequest.ForgottenTopic(topic, ZERO_UUID, partitions), skip_tags(b, p)


def _read_fetch_request_12(b, p):
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiiibii(b, p)
    topics, p = read_compact_array(b, p + 25, 3, _read_fetch_request_fetch_topic_12)
    forgotten_topics_data, p = read_compact_array(b, p, 3, _read_fetch_request_forgotten_topic_12)
    rack_id, p = read_compact_string(b, p)
    tags, p = read_tags(b, p)
    cluster_id = read_tag(tags[0], read_compact_nullable_string) if 0 in tags else None
    return FetchRequest(
        cluster_id, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level,
        session_id, session_epoch, topics, forgotten_topics_data, rack_id
    ), p


def _read_fetch_request_fetch_topic_13(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(b, p + 16, 33, _read_fetch_request_fetch_partition_12)
    return FetchRequest.FetchTopic("", topic_id, partitions), skip_tags(b, p)


def _read_fetch_request_forgotten_topic_13(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_numbers(b, p + 16, "i")
    return FetchRequest.ForgottenTopic("", topic_id, partitions), skip_tags(b, p)


def _read_fetch_request_13(b, p):
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiiibii(b, p)
    topics, p = read_compact_array(b, p + 25, 18, _read_fetch_request_fetch_topic_13)
    forgotten_topics_data, p = read_compact_array(b, p, 18, _read_fetch_request_forgotten_topic_13)
    rack_id, p = read_compact_string(b, p)
    tags, p = read_tags(b, p)
    cluster_id = read_tag(tags[0], read_compact_nullable_string) if 0 in tags else None
    return FetchRequest(
        cluster_id, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level,
        session_id, session_epoch, topics, forgotten_topics_data, rack_id
    ), p


def _read_fetch_request_replica_state_15(b, p):
    replica_id, replica_epoch = unpack_iq(b, p)
    return FetchRequest.ReplicaState(replica_id, replica_epoch), skip_tags(b, p + 12)


def _read_fetch_request_15(b, p):
    (
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiibii(b, p)
    topics, p = read_compact_array(b, p + 21, 18, _read_fetch_request_fetch_topic_13)
    forgotten_topics_data, p = read_compact_array(b, p, 18, _read_fetch_request_forgotten_topic_13)
    rack_id, p = read_compact_string(b, p)
    tags, p = read_tags(b, p)
    cluster_id = read_tag(tags[0], read_compact_nullable_string) if 0 in tags else None
    replica_state = read_tag(tags[1], _read_fetch_request_replica_state_15) if 1 in tags else None
    return FetchRequest(
        cluster_id, -1, replica_state, max_wait_ms, min_bytes, max_bytes, isolation_level,
        session_id, session_epoch, topics, forgotten_topics_data, rack_id
    ), p


def _read_fetch_request_fetch_partition_17(b, p):
    (
        partition, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset,
        partition_max_bytes
    ) = unpack_iiqiqi(b, p)
    tags, p = read_tags(b, p + 32)
    replica_directory_id = read_tag(tags[0], read_uuid) if 0 in tags else ZERO_UUID
    return FetchRequest.FetchPartition(
        partition, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset,
        partition_max_bytes, replica_directory_id
    ), p


def _read_fetch_request_fetch_topic_17(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(b, p + 16, 33, _read_fetch_request_fetch_partition_17)
    return FetchRequest.FetchTopic("", topic_id, partitions), skip_tags(b, p)


def _read_fetch_request_17(b, p):
    (
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    ) = unpack_iiibii(b, p)
    topics, p = read_compact_array(b, p + 21, 18, _read_fetch_request_fetch_topic_17)
    forgotten_topics_data, p = read_compact_array(b, p, 18, _read_fetch_request_forgotten_topic_13)
    rack_id, p = read_compact_string(b, p)
    tags, p = read_tags(b, p)
    cluster_id = read_tag(tags[0], read_compact_nullable_string) if 0 in tags else None
    replica_state = read_tag(tags[1], _read_fetch_request_replica_state_15) if 1 in tags else None
    return FetchRequest(
        cluster_id, -1, replica_state, max_wait_ms, min_bytes, max_bytes, isolation_level,
        session_id, session_epoch, topics, forgotten_topics_data, rack_id
    ), p


def _write_fetch_request_fetch_partition_4(w, o):
    w(pack_iqi(o.partition, o.fetch_offset, o.partition_max_bytes))


def _write_fetch_request_fetch_topic_4(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_fetch_request_fetch_partition_4)


def _write_fetch_request_4(w, o):
    w(pack_iiiib(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level))
    write_array(w, o.topics, _write_fetch_request_fetch_topic_4)


def _write_fetch_request_fetch_partition_5(w, o):
    w(pack_iqqi(o.partition, o.fetch_offset, o.log_start_offset, o.partition_max_bytes))


def _write_fetch_request_fetch_topic_5(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_fetch_request_fetch_partition_5)


def _write_fetch_request_5(w, o):
    w(pack_iiiib(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level))
    write_array(w, o.topics, _write_fetch_request_fetch_topic_5)


def _write_fetch_request_forgotten_topic_7(w, o):
    w(pack_string(o.topic) + pack_numbers(o.partitions, "i"))


def _write_fetch_request_7(w, o):
    w(
        pack_iiiibii(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level,
        o.session_id, o.session_epoch)
    )
    write_array(w, o.topics, _write_fetch_request_fetch_topic_5)
    write_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_7)


def _write_fetch_request_fetch_partition_9(w, o):
    w(
        pack_iiqqi(o.partition, o.current_leader_epoch, o.fetch_offset, o.log_start_offset,
        o.partition_max_bytes)
    )


def _write_fetch_request_fetch_topic_9(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_fetch_request_fetch_partition_9)


def _write_fetch_request_9(w, o):
    w(
        pack_iiiibii(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level,
        o.session_id, o.session_epoch)
    )
    write_array(w, o.topics, _write_fetch_request_fetch_topic_9)
    write_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_7)


def _write_fetch_request_11(w, o):
    w(
        pack_iiiibii(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level,
        o.session_id, o.session_epoch)
    )
    write_array(w, o.topics, _write_fetch_request_fetch_topic_9)
    write_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_7)
    w(pack_string(o.rack_id))


def _write_fetch_request_fetch_partition_12(w, o):
    w(
        pack_iiqiqix(o.partition, o.current_leader_epoch, o.fetch_offset, o.last_fetched_epoch,
        o.log_start_offset, o.partition_max_bytes)
    )


def _write_fetch_request_fetch_topic_12(w, o):
    w(pack_compact_string(o.topic))
    write_compact_array(w, o.partitions, _write_fetch_request_fetch_partition_12)
    w(NO_TAGS)


def _write_fetch_request_forgotten_topic_12(w, o):
    w(pack_compact_string(o.topic) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_fetch_request_12(w, o):
    w(
        pack_iiiibii(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level,
        o.session_id, o.session_epoch)
    )
    write_compact_array(w, o.topics, _write_fetch_request_fetch_topic_12)
    write_compact_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_12)
    w(pack_compact_string(o.rack_id))
    tags = []
    if o.cluster_id is not None:
        tags.append((0, pack_compact_nullable_string(o.cluster_id)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_fetch_request_fetch_topic_13(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_fetch_request_fetch_partition_12)
    w(NO_TAGS)


def _write_fetch_request_forgotten_topic_13(w, o):
    w(pack_u(o.topic_id.bytes) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_fetch_request_13(w, o):
    w(
        pack_iiiibii(o.replica_id, o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level,
        o.session_id, o.session_epoch)
    )
    write_compact_array(w, o.topics, _write_fetch_request_fetch_topic_13)
    write_compact_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_13)
    w(pack_compact_string(o.rack_id))
    tags = []
    if o.cluster_id is not None:
        tags.append((0, pack_compact_nullable_string(o.cluster_id)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_fetch_request_replica_state_15(w, o):
    w(pack_iqx(o.replica_id, o.replica_epoch))


def _write_fetch_request_15(w, o):
    w(
        pack_iiibii(o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level, o.session_id,
        o.session_epoch)
    )
    write_compact_array(w, o.topics, _write_fetch_request_fetch_topic_13)
    write_compact_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_13)
    w(pack_compact_string(o.rack_id))
    tags = []
    if o.cluster_id is not None:
        tags.append((0, pack_compact_nullable_string(o.cluster_id)))
    if o.replica_state is not None:
        tags.append((1, written(_write_fetch_request_replica_state_15, o.replica_state)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_fetch_request_fetch_partition_17(w, o):
    w(
        pack_iiqiqi(o.partition, o.current_leader_epoch, o.fetch_offset, o.last_fetched_epoch,
        o.log_start_offset, o.partition_max_bytes)
    )
    tags = []
    if o.replica_directory_id != ZERO_UUID:
        tags.append((0, pack_uuid(o.replica_directory_id)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_fetch_request_fetch_topic_17(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_fetch_request_fetch_partition_17)
    w(NO_TAGS)


def _write_fetch_request_17(w, o):
    w(
        pack_iiibii(o.max_wait_ms, o.min_bytes, o.max_bytes, o.isolation_level, o.session_id,
        o.session_epoch)
    )
    write_compact_array(w, o.topics, _write_fetch_request_fetch_topic_17)
    write_compact_array(w, o.forgotten_topics_data, _write_fetch_request_forgotten_topic_13)
    w(pack_compact_string(o.rack_id))
    tags = []
    if o.cluster_id is not None:
        tags.append((0, pack_compact_nullable_string(o.cluster_id)))
    if o.replica_state is not None:
        tags.append((1, written(_write_fetch_request_replica_state_15, o.replica_state)))
    w(pack_tags(tags) if tags else NO_TAGS)


FetchRequest.readers = since(17, {
    4: _read_fetch_request_4, 5: _read_fetch_request_5, 7: _read_fetch_request_7, 9:
    _read_fetch_request_9, 11: _read_fetch_request_11, 12: _read_fetch_request_12, 13:
    _read_fetch_request_13, 15: _read_fetch_request_15, 17: _read_fetch_request_17
})
FetchRequest.writers = since(17, {
    4: _write_fetch_request_4, 5: _write_fetch_request_5, 7: _write_fetch_request_7, 9:
    _write_fetch_request_9, 11: _write_fetch_request_11, 12: _write_fetch_request_12, 13:
    _write_fetch_request_13, 15: _write_fetch_request_15, 17: _write_fetch_request_17
})


class FetchResponse(ApiMessage):
    """API key 1, the response, versions 4-17."""

    class EpochEndOffset(Message):
        epoch: int = -1  # 12+
        end_offset: int = -1  # 12+

    class LeaderIdAndEpoch(Message):
        leader_id: int = -1  # 12+
        leader_epoch: int = -1  # 12+

    class SnapshotId(Message):
        end_offset: int = -1
        epoch: int = -1

    class AbortedTransaction(Message):
        producer_id: int = 0
        first_offset: int = 0

    class PartitionData(Message):
        partition_index: int = 0
        error_code: int = 0
        high_watermark: int = 0
        last_stable_offset: int = -1
        log_start_offset: int = -1  # 5+
        diverging_epoch: FetchResponse.EpochEndOffset | None = None  # 12+
        current_leader: FetchResponse.LeaderIdAndEpoch | None = None  # 12+
        snapshot_id: FetchResponse.SnapshotId | None = None  # 12+
        aborted_transactions: Sequence[FetchResponse.AbortedTransaction] | None = ()
        preferred_read_replica: int = -1  # 11+
        records: Records | None = b""

    class FetchableTopicResponse(Message):
        topic: str = ""  # 4-12
        topic_id: UUID = ZERO_UUID  # 13+
        partitions: Sequence[FetchResponse.PartitionData] = ()

    class NodeEndpoint(Message):
        node_id: int = 0  # 16+
        host: str = ""  # 16+
        port: int = 0  # 16+
        rack: str | None = None  # 16+

    throttle_time_ms: int = 0
    error_code: int = 0  # 7+
    session_id: int = 0  # 7+
    responses: Sequence[FetchResponse.FetchableTopicResponse] = ()
    node_endpoints: Sequence[FetchResponse.NodeEndpoint] = ()  # 16+


def _read_fetch_response_aborted_transaction_4(b, p):
    producer_id, first_offset = unpack_qq(b, p)
    return FetchResponse.AbortedTransaction(producer_id, first_offset), p + 16


def _read_fetch_response_partition_data_4(b, p):
    partition_index, error_code, high_watermark, last_stable_offset = unpack_ihqq(b, p)
    aborted_transactions, p = read_nullable_array(
        b, p + 22, 16, _read_fetch_response_aborted_transaction_4
    )
    records, p = read_nullable_records(b, p)
    return FetchResponse.PartitionData(
        partition_index, error_code, high_watermark, last_stable_offset, -1, None, None, None,
        aborted_transactions, -1, records
    ), p


def _read_fetch_response_fetchable_topic_response_4(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 30, _read_fetch_response_partition_data_4)
    return FetchResponse.FetchableTopicResponse(topic, ZERO_UUID, partitions), p


def _read_fetch_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_array(b, p + 4, 6, _read_fetch_response_fetchable_topic_response_4)
    return FetchResponse(throttle_time_ms, 0, 0, responses), p


def _read_fetch_response_partition_data_5(b, p):
    (
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset
    ) = unpack_ihqqq(b, p)
    aborted_transactions, p = read_nullable_array(
        b, p + 30, 16, _read_fetch_response_aborted_transaction_4
    )
    records, p = read_nullable_records(b, p)
    return FetchResponse.PartitionData(
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset, None,
        None, None, aborted_transactions, -1, records
    ), p


def _read_fetch_response_fetchable_topic_response_5(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 38, _read_fetch_response_partition_data_5)
    return FetchResponse.FetchableTopicResponse(topic, ZERO_UUID, partitions), p


def _read_fetch_response_5(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_array(b, p + 4, 6, _read_fetch_response_fetchable_topic_response_5)
    return FetchResponse(throttle_time_ms, 0, 0, responses), p


def _read_fetch_response_7(b, p):
    throttle_time_ms, error_code, session_id = unpack_ihi(b, p)
    responses, p = read_array(b, p + 10, 6, _read_fetch_response_fetchable_topic_response_5)
    return FetchResponse(throttle_time_ms, error_code, session_id, responses), p


def _read_fetch_response_partition_data_11(b, p):
    (
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset
    ) = unpack_ihqqq(b, p)
    aborted_transactions, p = read_nullable_array(
        b, p + 30, 16, _read_fetch_response_aborted_transaction_4
    )
    (preferred_read_replica,) = unpack_i(b, p)
    records, p = read_nullable_records(b, p + 4)
    return FetchResponse.PartitionData(
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset, None,
        None, None, aborted_transactions, preferred_read_replica, records
    ), p


def _read_fetch_response_fetchable_topic_response_11(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 42, _read_fetch_response_partition_data_11)
    return FetchResponse.FetchableTopicResponse(topic, ZERO_UUID, partitions), p


def _read_fetch_response_11(b, p):
    throttle_time_ms, error_code, session_id = unpack_ihi(b, p)
    responses, p = read_array(b, p + 10, 6, _read_fetch_response_fetchable_topic_response_11)
    return FetchResponse(throttle_time_ms, error_code, session_id, responses), p


def _read_fetch_response_aborted_transaction_12(b, p):
    producer_id, first_offset = unpack_qq(b, p)
    return FetchResponse.AbortedTransaction(producer_id, first_offset), skip_tags(b, p + 16)


def _read_fetch_response_epoch_end_offset_12(b, p):
    epoch, end_offset = unpack_iq(b, p)
    return FetchResponse.EpochEndOffset(epoch, end_offset), skip_tags(b, p + 12)


def _read_fetch_response_leader_id_and_epoch_12(b, p):
    leader_id, leader_epoch = unpack_ii(b, p)
    return FetchResponse.LeaderIdAndEpoch(leader_id, leader_epoch), skip_tags(b, p + 8)


def _read_fetch_response_snapshot_id_12(b, p):
    end_offset, epoch = unpack_qi(b, p)
    return FetchResponse.SnapshotId(end_offset, epoch), skip_tags(b, p + 12)


def _read_fetch_response_partition_data_12(b, p):
    (
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset
    ) = unpack_ihqqq(b, p)
    aborted_transactions, p = read_compact_nullable_array(
        b, p + 30, 17, _read_fetch_response_aborted_transaction_12
    )
    (preferred_read_replica,) = unpack_i(b, p)
    records, p = read_compact_nullable_records(b, p + 4)
    tags, p = read_tags(b, p)
    diverging_epoch = read_tag(
        tags[0], _read_fetch_response_epoch_end_offset_12
    ) if 0 in tags else None
    current_leader = read_tag(
        tags[1], _read_fetch_response_leader_id_and_epoch_12
    ) if 1 in tags else None
    snapshot_id = read_tag(tags[2], _read_fetch_response_snapshot_id_12) if 2 in tags else None
    return FetchResponse.PartitionData(
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset,
        diverging_epoch, current_leader, snapshot_id, aborted_transactions, preferred_read_replica,
        records
    ), p


def _read_fetch_response_fetchable_topic_response_12(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_array(b, p, 37, _read_fetch_response_partition_data_12)
    return FetchResponse.FetchableTopicResponse(topic, ZERO_UUID, partitions), skip_tags(b, p)


def _read_fetch_response_12(b, p):
    throttle_time_ms, error_code, session_id = unpack_ihi(b, p)
    responses, p = read_compact_array(
        b, p + 10, 3, _read_fetch_response_fetchable_topic_response_12
    )
    return FetchResponse(throttle_time_ms, error_code, session_id, responses), skip_tags(b, p)


def _read_fetch_response_fetchable_topic_response_13(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(b, p + 16, 37, _read_fetch_response_partition_data_12)
    return FetchResponse.FetchableTopicResponse("", topic_id, partitions), skip_tags(b, p)


def _read_fetch_response_13(b, p):
    throttle_time_ms, error_code, session_id = unpack_ihi(b, p)
    responses, p = read_compact_array(
        b, p + 10, 18, _read_fetch_response_fetchable_topic_response_13
    )
    return FetchResponse(throttle_time_ms, error_code, session_id, responses), skip_tags(b, p)


def _read_fetch_response_node_endpoint_16(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    return FetchResponse.NodeEndpoint(node_id, host, port, rack), skip_tags(b, p)


def _read_fetch_response_16(b, p):
    throttle_time_ms, error_code, session_id = unpack_ihi(b, p)
    responses, p = read_compact_array(
        b, p + 10, 18, _read_fetch_response_fetchable_topic_response_13
    )
    tags, p = read_tags(b, p)
    node_endpoints = read_tag(
        tags[0], read_compact_array, 11, _read_fetch_response_node_endpoint_16
    ) if 0 in tags else ()
    return FetchResponse(throttle_time_ms, error_code, session_id, responses, node_endpoints), p


def _write_fetch_response_aborted_transaction_4(w, o):
    w(pack_qq(o.producer_id, o.first_offset))


def _write_fetch_response_partition_data_4(w, o):
    w(pack_ihqq(o.partition_index, o.error_code, o.high_watermark, o.last_stable_offset))
    write_nullable_array(w, o.aborted_transactions, _write_fetch_response_aborted_transaction_4)
    write_nullable_records(w, o.records)


def _write_fetch_response_fetchable_topic_response_4(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_fetch_response_partition_data_4)


def _write_fetch_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.responses, _write_fetch_response_fetchable_topic_response_4)


def _write_fetch_response_partition_data_5(w, o):
    w(
        pack_ihqqq(o.partition_index, o.error_code, o.high_watermark, o.last_stable_offset,
        o.log_start_offset)
    )
    write_nullable_array(w, o.aborted_transactions, _write_fetch_response_aborted_transaction_4)
    write_nullable_records(w, o.records)


def _write_fetch_response_fetchable_topic_response_5(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_fetch_response_partition_data_5)


def _write_fetch_response_5(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.responses, _write_fetch_response_fetchable_topic_response_5)


def _write_fetch_response_7(w, o):
    w(pack_ihi(o.throttle_time_ms, o.error_code, o.session_id))
    write_array(w, o.responses, _write_fetch_response_fetchable_topic_response_5)


def _write_fetch_response_partition_data_11(w, o):
    w(
        pack_ihqqq(o.partition_index, o.error_code, o.high_watermark, o.last_stable_offset,
        o.log_start_offset)
    )
    write_nullable_array(w, o.aborted_transactions, _write_fetch_response_aborted_transaction_4)
    w(pack_i(o.preferred_read_replica))
    write_nullable_records(w, o.records)


def _write_fetch_response_fetchable_topic_response_11(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_fetch_response_partition_data_11)


def _write_fetch_response_11(w, o):
    w(pack_ihi(o.throttle_time_ms, o.error_code, o.session_id))
    write_array(w, o.responses, _write_fetch_response_fetchable_topic_response_11)


def _write_fetch_response_aborted_transaction_12(w, o):
    w(pack_qqx(o.producer_id, o.first_offset))


def _write_fetch_response_epoch_end_offset_12(w, o):
    w(pack_iqx(o.epoch, o.end_offset))


def _write_fetch_response_leader_id_and_epoch_12(w, o):
    w(pack_iix(o.leader_id, o.leader_epoch))


def _write_fetch_response_snapshot_id_12(w, o):
    w(pack_qix(o.end_offset, o.epoch))


def _write_fetch_response_partition_data_12(w, o):
    w(
        pack_ihqqq(o.partition_index, o.error_code, o.high_watermark, o.last_stable_offset,
        o.log_start_offset)
    )
    write_compact_nullable_array(
        w, o.aborted_transactions, _write_fetch_response_aborted_transaction_12
    )
    w(pack_i(o.preferred_read_replica))
    write_compact_nullable_records(w, o.records)
    tags = []
    if o.diverging_epoch is not None:
        tags.append((0, written(_write_fetch_response_epoch_end_offset_12, o.diverging_epoch)))
    if o.current_leader is not None:
        tags.append((1, written(_write_fetch_response_leader_id_and_epoch_12, o.current_leader)))
    if o.snapshot_id is not None:
        tags.append((2, written(_write_fetch_response_snapshot_id_12, o.snapshot_id)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_fetch_response_fetchable_topic_response_12(w, o):
    w(pack_compact_string(o.topic))
    write_compact_array(w, o.partitions, _write_fetch_response_partition_data_12)
    w(NO_TAGS)


def _write_fetch_response_12(w, o):
    w(pack_ihi(o.throttle_time_ms, o.error_code, o.session_id))
    write_compact_array(w, o.responses, _write_fetch_response_fetchable_topic_response_12)
    w(NO_TAGS)


def _write_fetch_response_fetchable_topic_response_13(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_fetch_response_partition_data_12)
    w(NO_TAGS)


def _write_fetch_response_13(w, o):
    w(pack_ihi(o.throttle_time_ms, o.error_code, o.session_id))
    write_compact_array(w, o.responses, _write_fetch_response_fetchable_topic_response_13)
    w(NO_TAGS)


def _write_fetch_response_node_endpoint_16(w, o):
    w(
        pack_i(o.node_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + NO_TAGS
    )


def _write_fetch_response_16(w, o):
    w(pack_ihi(o.throttle_time_ms, o.error_code, o.session_id))
    write_compact_array(w, o.responses, _write_fetch_response_fetchable_topic_response_13)
    tags = []
    if o.node_endpoints:
        tags.append((0,
            written(write_compact_array, o.node_endpoints, _write_fetch_response_node_endpoint_16)
        ))
    w(pack_tags(tags) if tags else NO_TAGS)


FetchResponse.readers = since(17, {
    4: _read_fetch_response_4, 5: _read_fetch_response_5, 7: _read_fetch_response_7, 11:
    _read_fetch_response_11, 12: _read_fetch_response_12, 13: _read_fetch_response_13, 16:
    _read_fetch_response_16
})
FetchResponse.writers = since(17, {
    4: _write_fetch_response_4, 5: _write_fetch_response_5, 7: _write_fetch_response_7, 11:
    _write_fetch_response_11, 12: _write_fetch_response_12, 13: _write_fetch_response_13, 16:
    _write_fetch_response_16
})


# -- 2: ListOffsets ----------------------------------------------------------------------------


class ListOffsetsRequest(ApiMessage):
    """API key 2, the request, versions 1-10."""

    class ListOffsetsPartition(Message):
        partition_index: int = 0
        current_leader_epoch: int = -1  # 4+
        timestamp: int = 0

    class ListOffsetsTopic(Message):
        name: str = ""
        partitions: Sequence[ListOffsetsRequest.ListOffsetsPartition] = ()

    replica_id: int = 0
    isolation_level: int = 0  # 2+
    topics: Sequence[ListOffsetsRequest.ListOffsetsTopic] = ()
    timeout_ms: int = 0  # 10+


def _read_list_offsets_request_list_offsets_partition_1(b, p):
    partition_index, timestamp = unpack_iq(b, p)
    return ListOffsetsRequest.ListOffsetsPartition(partition_index, -1, timestamp), p + 12


def _read_list_offsets_request_list_offsets_topic_1(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(b, p, 12, _read_list_offsets_request_list_offsets_partition_1)
    return ListOffsetsRequest.ListOffsetsTopic(name, partitions), p


def _read_list_offsets_request_1(b, p):
    (replica_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_list_offsets_request_list_offsets_topic_1)
    return ListOffsetsRequest(replica_id, 0, topics), p


def _read_list_offsets_request_2(b, p):
    replica_id, isolation_level = unpack_ib(b, p)
    topics, p = read_array(b, p + 5, 6, _read_list_offsets_request_list_offsets_topic_1)
    return ListOffsetsRequest(replica_id, isolation_level, topics), p


def _read_list_offsets_request_list_offsets_partition_4(b, p):
    partition_index, current_leader_epoch, timestamp = unpack_iiq(b, p)
    return ListOffsetsRequest.ListOffsetsPartition(
        partition_index, current_leader_epoch, timestamp
    ), p + 16


def _read_list_offsets_request_list_offsets_topic_4(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(b, p, 16, _read_list_offsets_request_list_offsets_partition_4)
    return ListOffsetsRequest.ListOffsetsTopic(name, partitions), p


def _read_list_offsets_request_4(b, p):
    replica_id, isolation_level = unpack_ib(b, p)
    topics, p = read_array(b, p + 5, 6, _read_list_offsets_request_list_offsets_topic_4)
    return ListOffsetsRequest(replica_id, isolation_level, topics), p


def _read_list_offsets_request_list_offsets_partition_6(b, p):
    partition_index, current_leader_epoch, timestamp = unpack_iiq(b, p)
    return ListOffsetsRequest.ListOffsetsPartition(
        partition_index, current_leader_epoch, timestamp
    ), skip_tags(b, p + 16)


def _read_list_offsets_request_list_offsets_topic_6(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 17, _read_list_offsets_request_list_offsets_partition_6
    )
    return ListOffsetsRequest.ListOffsetsTopic(name, partitions), skip_tags(b, p)


def _read_list_offsets_request_6(b, p):
    replica_id, isolation_level = unpack_ib(b, p)
    topics, p = read_compact_array(b, p + 5, 3, _read_list_offsets_request_list_offsets_topic_6)
    return ListOffsetsRequest(replica_id, isolation_level, topics), skip_tags(b, p)


def _read_list_offsets_request_10(b, p):
    replica_id, isolation_level = unpack_ib(b, p)
    topics, p = read_compact_array(b, p + 5, 3, _read_list_offsets_request_list_offsets_topic_6)
    (timeout_ms,) = unpack_i(b, p)
    return ListOffsetsRequest(replica_id, isolation_level, topics, timeout_ms), skip_tags(b, p + 4)


def _write_list_offsets_request_list_offsets_partition_1(w, o):
    w(pack_iq(o.partition_index, o.timestamp))


def _write_list_offsets_request_list_offsets_topic_1(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_list_offsets_request_list_offsets_partition_1)


def _write_list_offsets_request_1(w, o):
    w(pack_i(o.replica_id))
    write_array(w, o.topics, _write_list_offsets_request_list_offsets_topic_1)


def _write_list_offsets_request_2(w, o):
    w(pack_ib(o.replica_id, o.isolation_level))
    write_array(w, o.topics, _write_list_offsets_request_list_offsets_topic_1)


def _write_list_offsets_request_list_offsets_partition_4(w, o):
    w(pack_iiq(o.partition_index, o.current_leader_epoch, o.timestamp))


def _write_list_offsets_request_list_offsets_topic_4(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_list_offsets_request_list_offsets_partition_4)


def _write_list_offsets_request_4(w, o):
    w(pack_ib(o.replica_id, o.isolation_level))
    write_array(w, o.topics, _write_list_offsets_request_list_offsets_topic_4)


def _write_list_offsets_request_list_offsets_partition_6(w, o):
    w(pack_iiqx(o.partition_index, o.current_leader_epoch, o.timestamp))


def _write_list_offsets_request_list_offsets_topic_6(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(w, o.partitions, _write_list_offsets_request_list_offsets_partition_6)
    w(NO_TAGS)


def _write_list_offsets_request_6(w, o):
    w(pack_ib(o.replica_id, o.isolation_level))
    write_compact_array(w, o.topics, _write_list_offsets_request_list_offsets_topic_6)
    w(NO_TAGS)


def _write_list_offsets_request_10(w, o):
    w(pack_ib(o.replica_id, o.isolation_level))
    write_compact_array(w, o.topics, _write_list_offsets_request_list_offsets_topic_6)
    w(pack_ix(o.timeout_ms))


ListOffsetsRequest.readers = since(10, {
    1: _read_list_offsets_request_1, 2: _read_list_offsets_request_2, 4:
    _read_list_offsets_request_4, 6: _read_list_offsets_request_6, 10: _read_list_offsets_request_10
})
ListOffsetsRequest.writers = since(10, {
    1: _write_list_offsets_request_1, 2: _write_list_offsets_request_2, 4:
    _write_list_offsets_request_4, 6: _write_list_offsets_request_6, 10:
    _write_list_offsets_request_10
})


class ListOffsetsResponse(ApiMessage):
    """API key 2, the response, versions 1-10."""

    class ListOffsetsPartitionResponse(Message):
        partition_index: int = 0
        error_code: int = 0
        timestamp: int = -1
        offset: int = -1
        leader_epoch: int = -1  # 4+

    class ListOffsetsTopicResponse(Message):
        name: str = ""
        partitions: Sequence[ListOffsetsResponse.ListOffsetsPartitionResponse] = ()

    throttle_time_ms: int = 0  # 2+
    topics: Sequence[ListOffsetsResponse.ListOffsetsTopicResponse] = ()


def _read_list_offsets_response_list_offsets_partition_response_1(b, p):
    partition_index, error_code, timestamp, offset = unpack_ihqq(b, p)
    return ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index, error_code, timestamp, offset
    ), p + 22


def _read_list_offsets_response_list_offsets_topic_response_1(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 22, _read_list_offsets_response_list_offsets_partition_response_1
    )
    return ListOffsetsResponse.ListOffsetsTopicResponse(name, partitions), p


def _read_list_offsets_response_1(b, p):
    topics, p = read_array(b, p, 6, _read_list_offsets_response_list_offsets_topic_response_1)
    return ListOffsetsResponse(0, topics), p


def _read_list_offsets_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_list_offsets_response_list_offsets_topic_response_1)
    return ListOffsetsResponse(throttle_time_ms, topics), p


def _read_list_offsets_response_list_offsets_partition_response_4(b, p):
    partition_index, error_code, timestamp, offset, leader_epoch = unpack_ihqqi(b, p)
    return ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index, error_code, timestamp, offset, leader_epoch
    ), p + 26


def _read_list_offsets_response_list_offsets_topic_response_4(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 26, _read_list_offsets_response_list_offsets_partition_response_4
    )
    return ListOffsetsResponse.ListOffsetsTopicResponse(name, partitions), p


def _read_list_offsets_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_list_offsets_response_list_offsets_topic_response_4)
    return ListOffsetsResponse(throttle_time_ms, topics), p


def _read_list_offsets_response_list_offsets_partition_response_6(b, p):
    partition_index, error_code, timestamp, offset, leader_epoch = unpack_ihqqi(b, p)
    return ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index, error_code, timestamp, offset, leader_epoch
    ), skip_tags(b, p + 26)


def _read_list_offsets_response_list_offsets_topic_response_6(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 27, _read_list_offsets_response_list_offsets_partition_response_6
    )
    return ListOffsetsResponse.ListOffsetsTopicResponse(name, partitions), skip_tags(b, p)


def _read_list_offsets_response_6(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_list_offsets_response_list_offsets_topic_response_6
    )
    return ListOffsetsResponse(throttle_time_ms, topics), skip_tags(b, p)


def _write_list_offsets_response_list_offsets_partition_response_1(w, o):
    w(pack_ihqq(o.partition_index, o.error_code, o.timestamp, o.offset))


def _write_list_offsets_response_list_offsets_topic_response_1(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_list_offsets_response_list_offsets_partition_response_1)


def _write_list_offsets_response_1(w, o):
    write_array(w, o.topics, _write_list_offsets_response_list_offsets_topic_response_1)


def _write_list_offsets_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_list_offsets_response_list_offsets_topic_response_1)


def _write_list_offsets_response_list_offsets_partition_response_4(w, o):
    w(pack_ihqqi(o.partition_index, o.error_code, o.timestamp, o.offset, o.leader_epoch))


def _write_list_offsets_response_list_offsets_topic_response_4(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_list_offsets_response_list_offsets_partition_response_4)


def _write_list_offsets_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_list_offsets_response_list_offsets_topic_response_4)


def _write_list_offsets_response_list_offsets_partition_response_6(w, o):
    w(pack_ihqqix(o.partition_index, o.error_code, o.timestamp, o.offset, o.leader_epoch))


def _write_list_offsets_response_list_offsets_topic_response_6(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_list_offsets_response_list_offsets_partition_response_6
    )
    w(NO_TAGS)


def _write_list_offsets_response_6(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_list_offsets_response_list_offsets_topic_response_6)
    w(NO_TAGS)


ListOffsetsResponse.readers = since(10, {
    1: _read_list_offsets_response_1, 2: _read_list_offsets_response_2, 4:
    _read_list_offsets_response_4, 6: _read_list_offsets_response_6
})
ListOffsetsResponse.writers = since(10, {
    1: _write_list_offsets_response_1, 2: _write_list_offsets_response_2, 4:
    _write_list_offsets_response_4, 6: _write_list_offsets_response_6
})


# -- 3: Metadata -------------------------------------------------------------------------------


class MetadataRequest(ApiMessage):
    """API key 3, the request, versions 0-13."""

    class MetadataRequestTopic(Message):
        topic_id: UUID = ZERO_UUID  # 10+
        name: str | None = ""

    topics: Sequence[MetadataRequest.MetadataRequestTopic] | None = ()
    allow_auto_topic_creation: bool = True  # 4+
    include_cluster_authorized_operations: bool = False  # 8-10
    include_topic_authorized_operations: bool = False  # 8+


def _read_metadata_request_metadata_request_topic_0(b, p):
    name, p = read_string(b, p)
    return MetadataRequest.MetadataRequestTopic(ZERO_UUID, name), p


def _read_metadata_request_0(b, p):
    topics, p = read_array(b, p, 2, _read_metadata_request_metadata_request_topic_0)
    return MetadataRequest(topics), p


def _read_metadata_request_1(b, p):
    topics, p = read_nullable_array(b, p, 2, _read_metadata_request_metadata_request_topic_0)
    return MetadataRequest(topics), p


def _read_metadata_request_4(b, p):
    topics, p = read_nullable_array(b, p, 2, _read_metadata_request_metadata_request_topic_0)
    (allow_auto_topic_creation,) = unpack_t(b, p)
    return MetadataRequest(topics, allow_auto_topic_creation), p + 1


def _read_metadata_request_8(b, p):
    topics, p = read_nullable_array(b, p, 2, _read_metadata_request_metadata_request_topic_0)
    (
        allow_auto_topic_creation, include_cluster_authorized_operations,
        include_topic_authorized_operations
    ) = unpack_ttt(b, p)
    return MetadataRequest(
        topics, allow_auto_topic_creation, include_cluster_authorized_operations,
        include_topic_authorized_operations
    ), p + 3


def _read_metadata_request_metadata_request_topic_9(b, p):
    name, p = read_compact_string(b, p)
    return MetadataRequest.MetadataRequestTopic(ZERO_UUID, name), skip_tags(b, p)


def _read_metadata_request_9(b, p):
    topics, p = read_compact_nullable_array(
        b, p, 2, _read_metadata_request_metadata_request_topic_9
    )
    (
        allow_auto_topic_creation, include_cluster_authorized_operations,
        include_topic_authorized_operations
    ) = unpack_ttt(b, p)
    return MetadataRequest(
        topics, allow_auto_topic_creation, include_cluster_authorized_operations,
        include_topic_authorized_operations
    ), skip_tags(b, p + 3)


def _read_metadata_request_metadata_request_topic_10(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    name, p = read_compact_nullable_string(b, p + 16)
    return MetadataRequest.MetadataRequestTopic(topic_id, name), skip_tags(b, p)


def _read_metadata_request_10(b, p):
    topics, p = read_compact_nullable_array(
        b, p, 18, _read_metadata_request_metadata_request_topic_10
    )
    (
        allow_auto_topic_creation, include_cluster_authorized_operations,
        include_topic_authorized_operations
    ) = unpack_ttt(b, p)
    return MetadataRequest(
        topics, allow_auto_topic_creation, include_cluster_authorized_operations,
        include_topic_authorized_operations
    ), skip_tags(b, p + 3)


def _read_metadata_request_11(b, p):
    topics, p = read_compact_nullable_array(
        b, p, 18, _read_metadata_request_metadata_request_topic_10
    )
    allow_auto_topic_creation, include_topic_authorized_operations = unpack_tt(b, p)
    return MetadataRequest(
        topics, allow_auto_topic_creation, False, include_topic_authorized_operations
    ), skip_tags(b, p + 2)


def _write_metadata_request_metadata_request_topic_0(w, o):
    w(pack_string(o.name))


def _write_metadata_request_0(w, o):
    write_array(w, o.topics, _write_metadata_request_metadata_request_topic_0)


def _write_metadata_request_1(w, o):
    write_nullable_array(w, o.topics, _write_metadata_request_metadata_request_topic_0)


def _write_metadata_request_4(w, o):
    write_nullable_array(w, o.topics, _write_metadata_request_metadata_request_topic_0)
    w(pack_t(o.allow_auto_topic_creation))


def _write_metadata_request_8(w, o):
    write_nullable_array(w, o.topics, _write_metadata_request_metadata_request_topic_0)
    w(
        pack_ttt(o.allow_auto_topic_creation, o.include_cluster_authorized_operations,
        o.include_topic_authorized_operations)
    )


def _write_metadata_request_metadata_request_topic_9(w, o):
    w(pack_compact_string(o.name) + NO_TAGS)


def _write_metadata_request_9(w, o):
    write_compact_nullable_array(w, o.topics, _write_metadata_request_metadata_request_topic_9)
    w(
        pack_tttx(o.allow_auto_topic_creation, o.include_cluster_authorized_operations,
        o.include_topic_authorized_operations)
    )


def _write_metadata_request_metadata_request_topic_10(w, o):
    w(pack_u(o.topic_id.bytes) + pack_compact_nullable_string(o.name) + NO_TAGS)


def _write_metadata_request_10(w, o):
    write_compact_nullable_array(w, o.topics, _write_metadata_request_metadata_request_topic_10)
    w(
        pack_tttx(o.allow_auto_topic_creation, o.include_cluster_authorized_operations,
        o.include_topic_authorized_operations)
    )


def _write_metadata_request_11(w, o):
    write_compact_nullable_array(w, o.topics, _write_metadata_request_metadata_request_topic_10)
    w(pack_ttx(o.allow_auto_topic_creation, o.include_topic_authorized_operations))


MetadataRequest.readers = since(13, {
    0: _read_metadata_request_0, 1: _read_metadata_request_1, 4: _read_metadata_request_4, 8:
    _read_metadata_request_8, 9: _read_metadata_request_9, 10: _read_metadata_request_10, 11:
    _read_metadata_request_11
})
MetadataRequest.writers = since(13, {
    0: _write_metadata_request_0, 1: _write_metadata_request_1, 4: _write_metadata_request_4, 8:
    _write_metadata_request_8, 9: _write_metadata_request_9, 10: _write_metadata_request_10, 11:
    _write_metadata_request_11
})


class MetadataResponse(ApiMessage):
    """API key 3, the response, versions 0-13."""

    class MetadataResponseBroker(Message):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None  # 1+

    class MetadataResponsePartition(Message):
        error_code: int = 0
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = -1  # 7+
        replica_nodes: Sequence[int] = ()
        isr_nodes: Sequence[int] = ()
        offline_replicas: Sequence[int] = ()  # 5+

    class MetadataResponseTopic(Message):
        error_code: int = 0
        name: str | None = ""
        topic_id: UUID = ZERO_UUID  # 10+
        is_internal: bool = False  # 1+
        partitions: Sequence[MetadataResponse.MetadataResponsePartition] = ()
        topic_authorized_operations: int = -2147483648  # 8+

    throttle_time_ms: int = 0  # 3+
    brokers: Sequence[MetadataResponse.MetadataResponseBroker] = ()
    cluster_id: str | None = None  # 2+
    controller_id: int = -1  # 1+
    topics: Sequence[MetadataResponse.MetadataResponseTopic] = ()
    cluster_authorized_operations: int = -2147483648  # 8-10
    error_code: int = 0  # 13+


def _read_metadata_response_metadata_response_broker_0(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_string(b, p + 4)
    (port,) = unpack_i(b, p)
    return MetadataResponse.MetadataResponseBroker(node_id, host, port), p + 4


def _read_metadata_response_metadata_response_partition_0(b, p):
    error_code, partition_index, leader_id = unpack_hii(b, p)
    replica_nodes, p = read_numbers(b, p + 10, "i")
    isr_nodes, p = read_numbers(b, p, "i")
    return MetadataResponse.MetadataResponsePartition(
        error_code, partition_index, leader_id, -1, replica_nodes, isr_nodes
    ), p


def _read_metadata_response_metadata_response_topic_0(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_string(b, p + 2)
    partitions, p = read_array(b, p, 18, _read_metadata_response_metadata_response_partition_0)
    return MetadataResponse.MetadataResponseTopic(error_code, name, ZERO_UUID, False, partitions), p


def _read_metadata_response_0(b, p):
    brokers, p = read_array(b, p, 10, _read_metadata_response_metadata_response_broker_0)
    topics, p = read_array(b, p, 8, _read_metadata_response_metadata_response_topic_0)
    return MetadataResponse(0, brokers, None, -1, topics), p


def _read_metadata_response_metadata_response_broker_1(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_nullable_string(b, p + 4)
    return MetadataResponse.MetadataResponseBroker(node_id, host, port, rack), p


def _read_metadata_response_metadata_response_topic_1(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_string(b, p + 2)
    (is_internal,) = unpack_t(b, p)
    partitions, p = read_array(b, p + 1, 18, _read_metadata_response_metadata_response_partition_0)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, ZERO_UUID, is_internal, partitions
    ), p


def _read_metadata_response_1(b, p):
    brokers, p = read_array(b, p, 12, _read_metadata_response_metadata_response_broker_1)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 9, _read_metadata_response_metadata_response_topic_1)
    return MetadataResponse(0, brokers, None, controller_id, topics), p


def _read_metadata_response_2(b, p):
    brokers, p = read_array(b, p, 12, _read_metadata_response_metadata_response_broker_1)
    cluster_id, p = read_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 9, _read_metadata_response_metadata_response_topic_1)
    return MetadataResponse(0, brokers, cluster_id, controller_id, topics), p


def _read_metadata_response_3(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_array(b, p + 4, 12, _read_metadata_response_metadata_response_broker_1)
    cluster_id, p = read_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 9, _read_metadata_response_metadata_response_topic_1)
    return MetadataResponse(throttle_time_ms, brokers, cluster_id, controller_id, topics), p


def _read_metadata_response_metadata_response_partition_5(b, p):
    error_code, partition_index, leader_id = unpack_hii(b, p)
    replica_nodes, p = read_numbers(b, p + 10, "i")
    isr_nodes, p = read_numbers(b, p, "i")
    offline_replicas, p = read_numbers(b, p, "i")
    return MetadataResponse.MetadataResponsePartition(
        error_code, partition_index, leader_id, -1, replica_nodes, isr_nodes, offline_replicas
    ), p


def _read_metadata_response_metadata_response_topic_5(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_string(b, p + 2)
    (is_internal,) = unpack_t(b, p)
    partitions, p = read_array(b, p + 1, 22, _read_metadata_response_metadata_response_partition_5)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, ZERO_UUID, is_internal, partitions
    ), p


def _read_metadata_response_5(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_array(b, p + 4, 12, _read_metadata_response_metadata_response_broker_1)
    cluster_id, p = read_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 9, _read_metadata_response_metadata_response_topic_5)
    return MetadataResponse(throttle_time_ms, brokers, cluster_id, controller_id, topics), p


def _read_metadata_response_metadata_response_partition_7(b, p):
    error_code, partition_index, leader_id, leader_epoch = unpack_hiii(b, p)
    replica_nodes, p = read_numbers(b, p + 14, "i")
    isr_nodes, p = read_numbers(b, p, "i")
    offline_replicas, p = read_numbers(b, p, "i")
    return MetadataResponse.MetadataResponsePartition(
        error_code, partition_index, leader_id, leader_epoch, replica_nodes, isr_nodes,
        offline_replicas
    ), p


def _read_metadata_response_metadata_response_topic_7(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_string(b, p + 2)
    (is_internal,) = unpack_t(b, p)
    partitions, p = read_array(b, p + 1, 26, _read_metadata_response_metadata_response_partition_7)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, ZERO_UUID, is_internal, partitions
    ), p


def _read_metadata_response_7(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_array(b, p + 4, 12, _read_metadata_response_metadata_response_broker_1)
    cluster_id, p = read_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 9, _read_metadata_response_metadata_response_topic_7)
    return MetadataResponse(throttle_time_ms, brokers, cluster_id, controller_id, topics), p


def _read_metadata_response_metadata_response_topic_8(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_string(b, p + 2)
    (is_internal,) = unpack_t(b, p)
    partitions, p = read_array(b, p + 1, 26, _read_metadata_response_metadata_response_partition_7)
    (topic_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, ZERO_UUID, is_internal, partitions, topic_authorized_operations
    ), p + 4


def _read_metadata_response_8(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_array(b, p + 4, 12, _read_metadata_response_metadata_response_broker_1)
    cluster_id, p = read_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 13, _read_metadata_response_metadata_response_topic_8)
    (cluster_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse(
        throttle_time_ms, brokers, cluster_id, controller_id, topics, cluster_authorized_operations
    ), p + 4


def _read_metadata_response_metadata_response_broker_9(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    return MetadataResponse.MetadataResponseBroker(node_id, host, port, rack), skip_tags(b, p)


def _read_metadata_response_metadata_response_partition_9(b, p):
    error_code, partition_index, leader_id, leader_epoch = unpack_hiii(b, p)
    replica_nodes, p = read_compact_numbers(b, p + 14, "i")
    isr_nodes, p = read_compact_numbers(b, p, "i")
    offline_replicas, p = read_compact_numbers(b, p, "i")
    return MetadataResponse.MetadataResponsePartition(
        error_code, partition_index, leader_id, leader_epoch, replica_nodes, isr_nodes,
        offline_replicas
    ), skip_tags(b, p)


def _read_metadata_response_metadata_response_topic_9(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_compact_string(b, p + 2)
    (is_internal,) = unpack_t(b, p)
    partitions, p = read_compact_array(
        b, p + 1, 18, _read_metadata_response_metadata_response_partition_9
    )
    (topic_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, ZERO_UUID, is_internal, partitions, topic_authorized_operations
    ), skip_tags(b, p + 4)


def _read_metadata_response_9(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_metadata_response_metadata_response_broker_9
    )
    cluster_id, p = read_compact_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_compact_array(b, p + 4, 10, _read_metadata_response_metadata_response_topic_9)
    (cluster_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse(
        throttle_time_ms, brokers, cluster_id, controller_id, topics, cluster_authorized_operations
    ), skip_tags(b, p + 4)


def _read_metadata_response_metadata_response_topic_10(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_compact_string(b, p + 2)
    topic_id, is_internal = unpack_ut(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 17, 18, _read_metadata_response_metadata_response_partition_9
    )
    (topic_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, topic_id, is_internal, partitions, topic_authorized_operations
    ), skip_tags(b, p + 4)


def _read_metadata_response_10(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_metadata_response_metadata_response_broker_9
    )
    cluster_id, p = read_compact_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_compact_array(b, p + 4, 26, _read_metadata_response_metadata_response_topic_10)
    (cluster_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse(
        throttle_time_ms, brokers, cluster_id, controller_id, topics, cluster_authorized_operations
    ), skip_tags(b, p + 4)


def _read_metadata_response_11(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_metadata_response_metadata_response_broker_9
    )
    cluster_id, p = read_compact_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_compact_array(b, p + 4, 26, _read_metadata_response_metadata_response_topic_10)
    return MetadataResponse(
        throttle_time_ms, brokers, cluster_id, controller_id, topics
    ), skip_tags(b, p)


def _read_metadata_response_metadata_response_topic_12(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_compact_nullable_string(b, p + 2)
    topic_id, is_internal = unpack_ut(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 17, 18, _read_metadata_response_metadata_response_partition_9
    )
    (topic_authorized_operations,) = unpack_i(b, p)
    return MetadataResponse.MetadataResponseTopic(
        error_code, name, topic_id, is_internal, partitions, topic_authorized_operations
    ), skip_tags(b, p + 4)


def _read_metadata_response_12(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_metadata_response_metadata_response_broker_9
    )
    cluster_id, p = read_compact_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_compact_array(b, p + 4, 26, _read_metadata_response_metadata_response_topic_12)
    return MetadataResponse(
        throttle_time_ms, brokers, cluster_id, controller_id, topics
    ), skip_tags(b, p)


def _read_metadata_response_13(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_metadata_response_metadata_response_broker_9
    )
    cluster_id, p = read_compact_nullable_string(b, p)
    (controller_id,) = unpack_i(b, p)
    topics, p = read_compact_array(b, p + 4, 26, _read_metadata_response_metadata_response_topic_12)
    (error_code,) = unpack_h(b, p)
    return MetadataResponse(
        throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, error_code
    ), skip_tags(b, p + 2)


def _write_metadata_response_metadata_response_broker_0(w, o):
    w(pack_i(o.node_id) + pack_string(o.host) + pack_i(o.port))


def _write_metadata_response_metadata_response_partition_0(w, o):
    w(
        pack_hii(o.error_code, o.partition_index, o.leader_id) + pack_numbers(o.replica_nodes, "i")
        + pack_numbers(o.isr_nodes, "i")
    )


def _write_metadata_response_metadata_response_topic_0(w, o):
    w(pack_h(o.error_code) + pack_string(o.name))
    write_array(w, o.partitions, _write_metadata_response_metadata_response_partition_0)


def _write_metadata_response_0(w, o):
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_0)
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_0)


def _write_metadata_response_metadata_response_broker_1(w, o):
    w(pack_i(o.node_id) + pack_string(o.host) + pack_i(o.port) + pack_nullable_string(o.rack))


def _write_metadata_response_metadata_response_topic_1(w, o):
    w(pack_h(o.error_code) + pack_string(o.name) + pack_t(o.is_internal))
    write_array(w, o.partitions, _write_metadata_response_metadata_response_partition_0)


def _write_metadata_response_1(w, o):
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_1)
    w(pack_i(o.controller_id))
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_1)


def _write_metadata_response_2(w, o):
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_1)
    w(pack_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_1)


def _write_metadata_response_3(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_1)
    w(pack_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_1)


def _write_metadata_response_metadata_response_partition_5(w, o):
    w(
        pack_hii(o.error_code, o.partition_index, o.leader_id) + pack_numbers(o.replica_nodes, "i")
        + pack_numbers(o.isr_nodes, "i") + pack_numbers(o.offline_replicas, "i")
    )


def _write_metadata_response_metadata_response_topic_5(w, o):
    w(pack_h(o.error_code) + pack_string(o.name) + pack_t(o.is_internal))
    write_array(w, o.partitions, _write_metadata_response_metadata_response_partition_5)


def _write_metadata_response_5(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_1)
    w(pack_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_5)


def _write_metadata_response_metadata_response_partition_7(w, o):
    w(
        pack_hiii(o.error_code, o.partition_index, o.leader_id, o.leader_epoch) +
        pack_numbers(o.replica_nodes, "i") + pack_numbers(o.isr_nodes, "i") +
        pack_numbers(o.offline_replicas, "i")
    )


def _write_metadata_response_metadata_response_topic_7(w, o):
    w(pack_h(o.error_code) + pack_string(o.name) + pack_t(o.is_internal))
    write_array(w, o.partitions, _write_metadata_response_metadata_response_partition_7)


def _write_metadata_response_7(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_1)
    w(pack_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_7)


def _write_metadata_response_metadata_response_topic_8(w, o):
    w(pack_h(o.error_code) + pack_string(o.name) + pack_t(o.is_internal))
    write_array(w, o.partitions, _write_metadata_response_metadata_response_partition_7)
    w(pack_i(o.topic_authorized_operations))


def _write_metadata_response_8(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.brokers, _write_metadata_response_metadata_response_broker_1)
    w(pack_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_array(w, o.topics, _write_metadata_response_metadata_response_topic_8)
    w(pack_i(o.cluster_authorized_operations))


def _write_metadata_response_metadata_response_broker_9(w, o):
    w(
        pack_i(o.node_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + NO_TAGS
    )


def _write_metadata_response_metadata_response_partition_9(w, o):
    w(
        pack_hiii(o.error_code, o.partition_index, o.leader_id, o.leader_epoch) +
        pack_compact_numbers(o.replica_nodes, "i") + pack_compact_numbers(o.isr_nodes, "i") +
        pack_compact_numbers(o.offline_replicas, "i") + NO_TAGS
    )


def _write_metadata_response_metadata_response_topic_9(w, o):
    w(pack_h(o.error_code) + pack_compact_string(o.name) + pack_t(o.is_internal))
    write_compact_array(w, o.partitions, _write_metadata_response_metadata_response_partition_9)
    w(pack_ix(o.topic_authorized_operations))


def _write_metadata_response_9(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.brokers, _write_metadata_response_metadata_response_broker_9)
    w(pack_compact_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_compact_array(w, o.topics, _write_metadata_response_metadata_response_topic_9)
    w(pack_ix(o.cluster_authorized_operations))


def _write_metadata_response_metadata_response_topic_10(w, o):
    w(pack_h(o.error_code) + pack_compact_string(o.name) + pack_ut(o.topic_id.bytes, o.is_internal))
    write_compact_array(w, o.partitions, _write_metadata_response_metadata_response_partition_9)
    w(pack_ix(o.topic_authorized_operations))


def _write_metadata_response_10(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.brokers, _write_metadata_response_metadata_response_broker_9)
    w(pack_compact_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_compact_array(w, o.topics, _write_metadata_response_metadata_response_topic_10)
    w(pack_ix(o.cluster_authorized_operations))


def _write_metadata_response_11(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.brokers, _write_metadata_response_metadata_response_broker_9)
    w(pack_compact_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_compact_array(w, o.topics, _write_metadata_response_metadata_response_topic_10)
    w(NO_TAGS)


def _write_metadata_response_metadata_response_topic_12(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.name) + pack_ut(o.topic_id.bytes,
        o.is_internal)
    )
    write_compact_array(w, o.partitions, _write_metadata_response_metadata_response_partition_9)
    w(pack_ix(o.topic_authorized_operations))


def _write_metadata_response_12(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.brokers, _write_metadata_response_metadata_response_broker_9)
    w(pack_compact_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_compact_array(w, o.topics, _write_metadata_response_metadata_response_topic_12)
    w(NO_TAGS)


def _write_metadata_response_13(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.brokers, _write_metadata_response_metadata_response_broker_9)
    w(pack_compact_nullable_string(o.cluster_id) + pack_i(o.controller_id))
    write_compact_array(w, o.topics, _write_metadata_response_metadata_response_topic_12)
    w(pack_hx(o.error_code))


MetadataResponse.readers = since(13, {
    0: _read_metadata_response_0, 1: _read_metadata_response_1, 2: _read_metadata_response_2, 3:
    _read_metadata_response_3, 5: _read_metadata_response_5, 7: _read_metadata_response_7, 8:
    _read_metadata_response_8, 9: _read_metadata_response_9, 10: _read_metadata_response_10, 11:
    _read_metadata_response_11, 12: _read_metadata_response_12, 13: _read_metadata_response_13
})
MetadataResponse.writers = since(13, {
    0: _write_metadata_response_0, 1: _write_metadata_response_1, 2: _write_metadata_response_2, 3:
    _write_metadata_response_3, 5: _write_metadata_response_5, 7: _write_metadata_response_7, 8:
    _write_metadata_response_8, 9: _write_metadata_response_9, 10: _write_metadata_response_10, 11:
    _write_metadata_response_11, 12: _write_metadata_response_12, 13: _write_metadata_response_13
})


# -- 8: OffsetCommit ---------------------------------------------------------------------------


class OffsetCommitRequest(ApiMessage):
    """API key 8, the request, versions 2-9."""

    class OffsetCommitRequestPartition(Message):
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1  # 6+
        committed_metadata: str | None = ""

    class OffsetCommitRequestTopic(Message):
        name: str = ""
        partitions: Sequence[OffsetCommitRequest.OffsetCommitRequestPartition] = ()

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None  # 7+
    retention_time_ms: int = -1  # 2-4
    topics: Sequence[OffsetCommitRequest.OffsetCommitRequestTopic] = ()


def _read_offset_commit_request_offset_commit_request_partition_2(b, p):
    partition_index, committed_offset = unpack_iq(b, p)
    committed_metadata, p = read_nullable_string(b, p + 12)
    return OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index, committed_offset, -1, committed_metadata
    ), p


def _read_offset_commit_request_offset_commit_request_topic_2(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 14, _read_offset_commit_request_offset_commit_request_partition_2
    )
    return OffsetCommitRequest.OffsetCommitRequestTopic(name, partitions), p


def _read_offset_commit_request_2(b, p):
    group_id, p = read_string(b, p)
    (generation_id_or_member_epoch,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    (retention_time_ms,) = unpack_q(b, p)
    topics, p = read_array(b, p + 8, 6, _read_offset_commit_request_offset_commit_request_topic_2)
    return OffsetCommitRequest(
        group_id, generation_id_or_member_epoch, member_id, None, retention_time_ms, topics
    ), p


def _read_offset_commit_request_5(b, p):
    group_id, p = read_string(b, p)
    (generation_id_or_member_epoch,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    topics, p = read_array(b, p, 6, _read_offset_commit_request_offset_commit_request_topic_2)
    return OffsetCommitRequest(
        group_id, generation_id_or_member_epoch, member_id, None, -1, topics
    ), p


def _read_offset_commit_request_offset_commit_request_partition_6(b, p):
    partition_index, committed_offset, committed_leader_epoch = unpack_iqi(b, p)
    committed_metadata, p = read_nullable_string(b, p + 16)
    return OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index, committed_offset, committed_leader_epoch, committed_metadata
    ), p


def _read_offset_commit_request_offset_commit_request_topic_6(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 18, _read_offset_commit_request_offset_commit_request_partition_6
    )
    return OffsetCommitRequest.OffsetCommitRequestTopic(name, partitions), p


def _read_offset_commit_request_6(b, p):
    group_id, p = read_string(b, p)
    (generation_id_or_member_epoch,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    topics, p = read_array(b, p, 6, _read_offset_commit_request_offset_commit_request_topic_6)
    return OffsetCommitRequest(
        group_id, generation_id_or_member_epoch, member_id, None, -1, topics
    ), p


def _read_offset_commit_request_7(b, p):
    group_id, p = read_string(b, p)
    (generation_id_or_member_epoch,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    group_instance_id, p = read_nullable_string(b, p)
    topics, p = read_array(b, p, 6, _read_offset_commit_request_offset_commit_request_topic_6)
    return OffsetCommitRequest(
        group_id, generation_id_or_member_epoch, member_id, group_instance_id, -1, topics
    ), p


def _read_offset_commit_request_offset_commit_request_partition_8(b, p):
    partition_index, committed_offset, committed_leader_epoch = unpack_iqi(b, p)
    committed_metadata, p = read_compact_nullable_string(b, p + 16)
    return OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index, committed_offset, committed_leader_epoch, committed_metadata
    ), skip_tags(b, p)


def _read_offset_commit_request_offset_commit_request_topic_8(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 18, _read_offset_commit_request_offset_commit_request_partition_8
    )
    return OffsetCommitRequest.OffsetCommitRequestTopic(name, partitions), skip_tags(b, p)


def _read_offset_commit_request_8(b, p):
    group_id, p = read_compact_string(b, p)
    (generation_id_or_member_epoch,) = unpack_i(b, p)
    member_id, p = read_compact_string(b, p + 4)
    group_instance_id, p = read_compact_nullable_string(b, p)
    topics, p = read_compact_array(
        b, p, 3, _read_offset_commit_request_offset_commit_request_topic_8
    )
    return OffsetCommitRequest(
        group_id, generation_id_or_member_epoch, member_id, group_instance_id, -1, topics
    ), skip_tags(b, p)


def _write_offset_commit_request_offset_commit_request_partition_2(w, o):
    w(pack_iq(o.partition_index, o.committed_offset) + pack_nullable_string(o.committed_metadata))


def _write_offset_commit_request_offset_commit_request_topic_2(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_commit_request_offset_commit_request_partition_2)


def _write_offset_commit_request_2(w, o):
    w(
        pack_string(o.group_id) + pack_i(o.generation_id_or_member_epoch) + pack_string(o.member_id)
        + pack_q(o.retention_time_ms)
    )
    write_array(w, o.topics, _write_offset_commit_request_offset_commit_request_topic_2)


def _write_offset_commit_request_5(w, o):
    w(pack_string(o.group_id) + pack_i(o.generation_id_or_member_epoch) + pack_string(o.member_id))
    write_array(w, o.topics, _write_offset_commit_request_offset_commit_request_topic_2)


def _write_offset_commit_request_offset_commit_request_partition_6(w, o):
    w(
        pack_iqi(o.partition_index, o.committed_offset, o.committed_leader_epoch) +
        pack_nullable_string(o.committed_metadata)
    )


def _write_offset_commit_request_offset_commit_request_topic_6(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_commit_request_offset_commit_request_partition_6)


def _write_offset_commit_request_6(w, o):
    w(pack_string(o.group_id) + pack_i(o.generation_id_or_member_epoch) + pack_string(o.member_id))
    write_array(w, o.topics, _write_offset_commit_request_offset_commit_request_topic_6)


def _write_offset_commit_request_7(w, o):
    w(
        pack_string(o.group_id) + pack_i(o.generation_id_or_member_epoch) + pack_string(o.member_id)
        + pack_nullable_string(o.group_instance_id)
    )
    write_array(w, o.topics, _write_offset_commit_request_offset_commit_request_topic_6)


def _write_offset_commit_request_offset_commit_request_partition_8(w, o):
    w(
        pack_iqi(o.partition_index, o.committed_offset, o.committed_leader_epoch) +
        pack_compact_nullable_string(o.committed_metadata) + NO_TAGS
    )


def _write_offset_commit_request_offset_commit_request_topic_8(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_offset_commit_request_offset_commit_request_partition_8
    )
    w(NO_TAGS)


def _write_offset_commit_request_8(w, o):
    w(
        pack_compact_string(o.group_id) + pack_i(o.generation_id_or_member_epoch) +
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id)
    )
    write_compact_array(w, o.topics, _write_offset_commit_request_offset_commit_request_topic_8)
    w(NO_TAGS)


OffsetCommitRequest.readers = since(9, {
    2: _read_offset_commit_request_2, 5: _read_offset_commit_request_5, 6:
    _read_offset_commit_request_6, 7: _read_offset_commit_request_7, 8:
    _read_offset_commit_request_8
})
OffsetCommitRequest.writers = since(9, {
    2: _write_offset_commit_request_2, 5: _write_offset_commit_request_5, 6:
    _write_offset_commit_request_6, 7: _write_offset_commit_request_7, 8:
    _write_offset_commit_request_8
})


class OffsetCommitResponse(ApiMessage):
    """API key 8, the response, versions 2-9."""

    class OffsetCommitResponsePartition(Message):
        partition_index: int = 0
        error_code: int = 0

    class OffsetCommitResponseTopic(Message):
        name: str = ""
        partitions: Sequence[OffsetCommitResponse.OffsetCommitResponsePartition] = ()

    throttle_time_ms: int = 0  # 3+
    topics: Sequence[OffsetCommitResponse.OffsetCommitResponseTopic] = ()


def _read_offset_commit_response_offset_commit_response_partition_2(b, p):
    partition_index, error_code = unpack_ih(b, p)
    return OffsetCommitResponse.OffsetCommitResponsePartition(partition_index, error_code), p + 6


def _read_offset_commit_response_offset_commit_response_topic_2(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 6, _read_offset_commit_response_offset_commit_response_partition_2
    )
    return OffsetCommitResponse.OffsetCommitResponseTopic(name, partitions), p


def _read_offset_commit_response_2(b, p):
    topics, p = read_array(b, p, 6, _read_offset_commit_response_offset_commit_response_topic_2)
    return OffsetCommitResponse(0, topics), p


def _read_offset_commit_response_3(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_offset_commit_response_offset_commit_response_topic_2)
    return OffsetCommitResponse(throttle_time_ms, topics), p


def _read_offset_commit_response_offset_commit_response_partition_8(b, p):
    partition_index, error_code = unpack_ih(b, p)
    return OffsetCommitResponse.OffsetCommitResponsePartition(
        partition_index, error_code
    ), skip_tags(b, p + 6)


def _read_offset_commit_response_offset_commit_response_topic_8(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 7, _read_offset_commit_response_offset_commit_response_partition_8
    )
    return OffsetCommitResponse.OffsetCommitResponseTopic(name, partitions), skip_tags(b, p)


def _read_offset_commit_response_8(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_offset_commit_response_offset_commit_response_topic_8
    )
    return OffsetCommitResponse(throttle_time_ms, topics), skip_tags(b, p)


def _write_offset_commit_response_offset_commit_response_partition_2(w, o):
    w(pack_ih(o.partition_index, o.error_code))


def _write_offset_commit_response_offset_commit_response_topic_2(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_commit_response_offset_commit_response_partition_2)


def _write_offset_commit_response_2(w, o):
    write_array(w, o.topics, _write_offset_commit_response_offset_commit_response_topic_2)


def _write_offset_commit_response_3(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_offset_commit_response_offset_commit_response_topic_2)


def _write_offset_commit_response_offset_commit_response_partition_8(w, o):
    w(pack_ihx(o.partition_index, o.error_code))


def _write_offset_commit_response_offset_commit_response_topic_8(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_offset_commit_response_offset_commit_response_partition_8
    )
    w(NO_TAGS)


def _write_offset_commit_response_8(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_offset_commit_response_offset_commit_response_topic_8)
    w(NO_TAGS)


OffsetCommitResponse.readers = since(9, {
    2: _read_offset_commit_response_2, 3: _read_offset_commit_response_3, 8:
    _read_offset_commit_response_8
})
OffsetCommitResponse.writers = since(9, {
    2: _write_offset_commit_response_2, 3: _write_offset_commit_response_3, 8:
    _write_offset_commit_response_8
})


# -- 9: OffsetFetch ----------------------------------------------------------------------------


class OffsetFetchRequest(ApiMessage):
    """API key 9, the request, versions 1-9."""

    class OffsetFetchRequestTopic(Message):
        name: str = ""  # 1-7
        partition_indexes: Sequence[int] = ()  # 1-7

    class OffsetFetchRequestTopics(Message):
        name: str = ""  # 8+
        partition_indexes: Sequence[int] = ()  # 8+

    class OffsetFetchRequestGroup(Message):
        group_id: str = ""  # 8+
        member_id: str | None = None  # 9+
        member_epoch: int = -1  # 9+
        topics: Sequence[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ()  # 8+

    group_id: str = ""  # 1-7
    topics: Sequence[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ()  # 1-7
    groups: Sequence[OffsetFetchRequest.OffsetFetchRequestGroup] = ()  # 8+
    require_stable: bool = False  # 7+


def _read_offset_fetch_request_offset_fetch_request_topic_1(b, p):
    name, p = read_string(b, p)
    partition_indexes, p = read_numbers(b, p, "i")
    return OffsetFetchRequest.OffsetFetchRequestTopic(name, partition_indexes), p


def _read_offset_fetch_request_1(b, p):
    group_id, p = read_string(b, p)
    topics, p = read_array(b, p, 6, _read_offset_fetch_request_offset_fetch_request_topic_1)
    return OffsetFetchRequest(group_id, topics), p


def _read_offset_fetch_request_2(b, p):
    group_id, p = read_string(b, p)
    topics, p = read_nullable_array(
        b, p, 6, _read_offset_fetch_request_offset_fetch_request_topic_1
    )
    return OffsetFetchRequest(group_id, topics), p


def _read_offset_fetch_request_offset_fetch_request_topic_6(b, p):
    name, p = read_compact_string(b, p)
    partition_indexes, p = read_compact_numbers(b, p, "i")
    return OffsetFetchRequest.OffsetFetchRequestTopic(name, partition_indexes), skip_tags(b, p)


def _read_offset_fetch_request_6(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_nullable_array(
        b, p, 3, _read_offset_fetch_request_offset_fetch_request_topic_6
    )
    return OffsetFetchRequest(group_id, topics), skip_tags(b, p)


def _read_offset_fetch_request_7(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_nullable_array(
        b, p, 3, _read_offset_fetch_request_offset_fetch_request_topic_6
    )
    (require_stable,) = unpack_t(b, p)
    return OffsetFetchRequest(group_id, topics, (), require_stable), skip_tags(b, p + 1)


def _read_offset_fetch_request_offset_fetch_request_topics_8(b, p):
    name, p = read_compact_string(b, p)
    partition_indexes, p = read_compact_numbers(b, p, "i")
    return OffsetFetchRequest.OffsetFetchRequestTopics(name, partition_indexes), skip_tags(b, p)


def _read_offset_fetch_request_offset_fetch_request_group_8(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_nullable_array(
        b, p, 3, _read_offset_fetch_request_offset_fetch_request_topics_8
    )
    return OffsetFetchRequest.OffsetFetchRequestGroup(group_id, None, -1, topics), skip_tags(b, p)


def _read_offset_fetch_request_8(b, p):
    groups, p = read_compact_array(b, p, 3, _read_offset_fetch_request_offset_fetch_request_group_8)
    (require_stable,) = unpack_t(b, p)
    return OffsetFetchRequest("", (), groups, require_stable), skip_tags(b, p + 1)


def _read_offset_fetch_request_offset_fetch_request_group_9(b, p):
    group_id, p = read_compact_string(b, p)
    member_id, p = read_compact_nullable_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    topics, p = read_compact_nullable_array(
        b, p + 4, 3, _read_offset_fetch_request_offset_fetch_request_topics_8
    )
    return OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id, member_id, member_epoch, topics
    ), skip_tags(b, p)


def _read_offset_fetch_request_9(b, p):
    groups, p = read_compact_array(b, p, 8, _read_offset_fetch_request_offset_fetch_request_group_9)
    (require_stable,) = unpack_t(b, p)
    return OffsetFetchRequest("", (), groups, require_stable), skip_tags(b, p + 1)


def _write_offset_fetch_request_offset_fetch_request_topic_1(w, o):
    w(pack_string(o.name) + pack_numbers(o.partition_indexes, "i"))


def _write_offset_fetch_request_1(w, o):
    w(pack_string(o.group_id))
    write_array(w, o.topics, _write_offset_fetch_request_offset_fetch_request_topic_1)


def _write_offset_fetch_request_2(w, o):
    w(pack_string(o.group_id))
    write_nullable_array(w, o.topics, _write_offset_fetch_request_offset_fetch_request_topic_1)


def _write_offset_fetch_request_offset_fetch_request_topic_6(w, o):
    w(pack_compact_string(o.name) + pack_compact_numbers(o.partition_indexes, "i") + NO_TAGS)


def _write_offset_fetch_request_6(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_nullable_array(
        w, o.topics, _write_offset_fetch_request_offset_fetch_request_topic_6
    )
    w(NO_TAGS)


def _write_offset_fetch_request_7(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_nullable_array(
        w, o.topics, _write_offset_fetch_request_offset_fetch_request_topic_6
    )
    w(pack_tx(o.require_stable))


def _write_offset_fetch_request_8(w, o):
    write_compact_array(w, o.groups, _write_offset_fetch_request_6)
    w(pack_tx(o.require_stable))


def _write_offset_fetch_request_offset_fetch_request_group_9(w, o):
    w(
        pack_compact_string(o.group_id) + pack_compact_nullable_string(o.member_id) +
        pack_i(o.member_epoch)
    )
    write_compact_nullable_array(
        w, o.topics, _write_offset_fetch_request_offset_fetch_request_topic_6
    )
    w(NO_TAGS)


def _write_offset_fetch_request_9(w, o):
    write_compact_array(w, o.groups, _write_offset_fetch_request_offset_fetch_request_group_9)
    w(pack_tx(o.require_stable))


OffsetFetchRequest.readers = since(9, {
    1: _read_offset_fetch_request_1, 2: _read_offset_fetch_request_2, 6:
    _read_offset_fetch_request_6, 7: _read_offset_fetch_request_7, 8: _read_offset_fetch_request_8,
    9: _read_offset_fetch_request_9
})
OffsetFetchRequest.writers = since(9, {
    1: _write_offset_fetch_request_1, 2: _write_offset_fetch_request_2, 6:
    _write_offset_fetch_request_6, 7: _write_offset_fetch_request_7, 8:
    _write_offset_fetch_request_8, 9: _write_offset_fetch_request_9
})


class OffsetFetchResponse(ApiMessage):
    """API key 9, the response, versions 1-9."""

    class OffsetFetchResponsePartition(Message):
        partition_index: int = 0  # 1-7
        committed_offset: int = 0  # 1-7
        committed_leader_epoch: int = -1  # 5-7
        metadata: str | None = ""  # 1-7
        error_code: int = 0  # 1-7

    class OffsetFetchResponseTopic(Message):
        name: str = ""  # 1-7
        partitions: Sequence[OffsetFetchResponse.OffsetFetchResponsePartition] = ()  # 1-7

    class OffsetFetchResponsePartitions(Message):
        partition_index: int = 0  # 8+
        committed_offset: int = 0  # 8+
        committed_leader_epoch: int = -1  # 8+
        metadata: str | None = ""  # 8+
        error_code: int = 0  # 8+

    class OffsetFetchResponseTopics(Message):
        name: str = ""  # 8+
        partitions: Sequence[OffsetFetchResponse.OffsetFetchResponsePartitions] = ()  # 8+

    class OffsetFetchResponseGroup(Message):
        group_id: str = ""  # 8+
        topics: Sequence[OffsetFetchResponse.OffsetFetchResponseTopics] = ()  # 8+
        error_code: int = 0  # 8+

    throttle_time_ms: int = 0  # 3+
    topics: Sequence[OffsetFetchResponse.OffsetFetchResponseTopic] = ()  # 1-7
    error_code: int = 0  # 2-7
    groups: Sequence[OffsetFetchResponse.OffsetFetchResponseGroup] = ()  # 8+


def _read_offset_fetch_response_offset_fetch_response_partition_1(b, p):
    partition_index, committed_offset = unpack_iq(b, p)
    metadata, p = read_nullable_string(b, p + 12)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse.OffsetFetchResponsePartition(
        partition_index, committed_offset, -1, metadata, error_code
    ), p + 2


def _read_offset_fetch_response_offset_fetch_response_topic_1(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 16, _read_offset_fetch_response_offset_fetch_response_partition_1
    )
    return OffsetFetchResponse.OffsetFetchResponseTopic(name, partitions), p


def _read_offset_fetch_response_1(b, p):
    topics, p = read_array(b, p, 6, _read_offset_fetch_response_offset_fetch_response_topic_1)
    return OffsetFetchResponse(0, topics), p


def _read_offset_fetch_response_2(b, p):
    topics, p = read_array(b, p, 6, _read_offset_fetch_response_offset_fetch_response_topic_1)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse(0, topics, error_code), p + 2


def _read_offset_fetch_response_3(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_offset_fetch_response_offset_fetch_response_topic_1)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse(throttle_time_ms, topics, error_code), p + 2


def _read_offset_fetch_response_offset_fetch_response_partition_5(b, p):
    partition_index, committed_offset, committed_leader_epoch = unpack_iqi(b, p)
    metadata, p = read_nullable_string(b, p + 16)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse.OffsetFetchResponsePartition(
        partition_index, committed_offset, committed_leader_epoch, metadata, error_code
    ), p + 2


def _read_offset_fetch_response_offset_fetch_response_topic_5(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 20, _read_offset_fetch_response_offset_fetch_response_partition_5
    )
    return OffsetFetchResponse.OffsetFetchResponseTopic(name, partitions), p


def _read_offset_fetch_response_5(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_offset_fetch_response_offset_fetch_response_topic_5)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse(throttle_time_ms, topics, error_code), p + 2


def _read_offset_fetch_response_offset_fetch_response_partition_6(b, p):
    partition_index, committed_offset, committed_leader_epoch = unpack_iqi(b, p)
    metadata, p = read_compact_nullable_string(b, p + 16)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse.OffsetFetchResponsePartition(
        partition_index, committed_offset, committed_leader_epoch, metadata, error_code
    ), skip_tags(b, p + 2)


def _read_offset_fetch_response_offset_fetch_response_topic_6(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 20, _read_offset_fetch_response_offset_fetch_response_partition_6
    )
    return OffsetFetchResponse.OffsetFetchResponseTopic(name, partitions), skip_tags(b, p)


def _read_offset_fetch_response_6(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_offset_fetch_response_offset_fetch_response_topic_6
    )
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse(throttle_time_ms, topics, error_code), skip_tags(b, p + 2)


def _read_offset_fetch_response_offset_fetch_response_partitions_8(b, p):
    partition_index, committed_offset, committed_leader_epoch = unpack_iqi(b, p)
    metadata, p = read_compact_nullable_string(b, p + 16)
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index, committed_offset, committed_leader_epoch, metadata, error_code
    ), skip_tags(b, p + 2)


def _read_offset_fetch_response_offset_fetch_response_topics_8(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 20, _read_offset_fetch_response_offset_fetch_response_partitions_8
    )
    return OffsetFetchResponse.OffsetFetchResponseTopics(name, partitions), skip_tags(b, p)


def _read_offset_fetch_response_offset_fetch_response_group_8(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_array(
        b, p, 3, _read_offset_fetch_response_offset_fetch_response_topics_8
    )
    (error_code,) = unpack_h(b, p)
    return OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id, topics, error_code
    ), skip_tags(b, p + 2)


def _read_offset_fetch_response_8(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(
        b, p + 4, 5, _read_offset_fetch_response_offset_fetch_response_group_8
    )
    return OffsetFetchResponse(throttle_time_ms, (), 0, groups), skip_tags(b, p)


def _write_offset_fetch_response_offset_fetch_response_partition_1(w, o):
    w(
        pack_iq(o.partition_index, o.committed_offset) + pack_nullable_string(o.metadata) +
        pack_h(o.error_code)
    )


def _write_offset_fetch_response_offset_fetch_response_topic_1(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_fetch_response_offset_fetch_response_partition_1)


def _write_offset_fetch_response_1(w, o):
    write_array(w, o.topics, _write_offset_fetch_response_offset_fetch_response_topic_1)


def _write_offset_fetch_response_2(w, o):
    write_array(w, o.topics, _write_offset_fetch_response_offset_fetch_response_topic_1)
    w(pack_h(o.error_code))


def _write_offset_fetch_response_3(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_offset_fetch_response_offset_fetch_response_topic_1)
    w(pack_h(o.error_code))


def _write_offset_fetch_response_offset_fetch_response_partition_5(w, o):
    w(
        pack_iqi(o.partition_index, o.committed_offset, o.committed_leader_epoch) +
        pack_nullable_string(o.metadata) + pack_h(o.error_code)
    )


def _write_offset_fetch_response_offset_fetch_response_topic_5(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_fetch_response_offset_fetch_response_partition_5)


def _write_offset_fetch_response_5(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_offset_fetch_response_offset_fetch_response_topic_5)
    w(pack_h(o.error_code))


def _write_offset_fetch_response_offset_fetch_response_partition_6(w, o):
    w(
        pack_iqi(o.partition_index, o.committed_offset, o.committed_leader_epoch) +
        pack_compact_nullable_string(o.metadata) + pack_hx(o.error_code)
    )


def _write_offset_fetch_response_offset_fetch_response_topic_6(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_offset_fetch_response_offset_fetch_response_partition_6
    )
    w(NO_TAGS)


def _write_offset_fetch_response_6(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_offset_fetch_response_offset_fetch_response_topic_6)
    w(pack_hx(o.error_code))


def _write_offset_fetch_response_offset_fetch_response_group_8(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_array(w, o.topics, _write_offset_fetch_response_offset_fetch_response_topic_6)
    w(pack_hx(o.error_code))


def _write_offset_fetch_response_8(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.groups, _write_offset_fetch_response_offset_fetch_response_group_8)
    w(NO_TAGS)


OffsetFetchResponse.readers = since(9, {
    1: _read_offset_fetch_response_1, 2: _read_offset_fetch_response_2, 3:
    _read_offset_fetch_response_3, 5: _read_offset_fetch_response_5, 6:
    _read_offset_fetch_response_6, 8: _read_offset_fetch_response_8
})
OffsetFetchResponse.writers = since(9, {
    1: _write_offset_fetch_response_1, 2: _write_offset_fetch_response_2, 3:
    _write_offset_fetch_response_3, 5: _write_offset_fetch_response_5, 6:
    _write_offset_fetch_response_6, 8: _write_offset_fetch_response_8
})


# -- 10: FindCoordinator -----------------------------------------------------------------------


class FindCoordinatorRequest(ApiMessage):
    """API key 10, the request, versions 0-6."""

    key: str = ""  # 0-3
    key_type: int = 0  # 1+
    coordinator_keys: Sequence[str] = ()  # 4+


def _read_find_coordinator_request_0(b, p):
    key, p = read_string(b, p)
    return FindCoordinatorRequest(key), p


def _read_find_coordinator_request_1(b, p):
    key, p = read_string(b, p)
    (key_type,) = unpack_b(b, p)
    return FindCoordinatorRequest(key, key_type), p + 1


def _read_find_coordinator_request_3(b, p):
    key, p = read_compact_string(b, p)
    (key_type,) = unpack_b(b, p)
    return FindCoordinatorRequest(key, key_type), skip_tags(b, p + 1)


def _read_find_coordinator_request_4(b, p):
    (key_type,) = unpack_b(b, p)
    coordinator_keys, p = read_compact_array(b, p + 1, 1, read_compact_string)
    return FindCoordinatorRequest("", key_type, coordinator_keys), skip_tags(b, p)


def _write_find_coordinator_request_0(w, o):
    w(pack_string(o.key))


def _write_find_coordinator_request_1(w, o):
    w(pack_string(o.key) + pack_b(o.key_type))


def _write_find_coordinator_request_3(w, o):
    w(pack_compact_string(o.key) + pack_bx(o.key_type))


def _write_find_coordinator_request_4(w, o):
    w(pack_b(o.key_type) + pack_compact_array(o.coordinator_keys, pack_compact_string) + NO_TAGS)


FindCoordinatorRequest.readers = since(6, {
    0: _read_find_coordinator_request_0, 1: _read_find_coordinator_request_1, 3:
    _read_find_coordinator_request_3, 4: _read_find_coordinator_request_4
})
FindCoordinatorRequest.writers = since(6, {
    0: _write_find_coordinator_request_0, 1: _write_find_coordinator_request_1, 3:
    _write_find_coordinator_request_3, 4: _write_find_coordinator_request_4
})


class FindCoordinatorResponse(ApiMessage):
    """API key 10, the response, versions 0-6."""

    class Coordinator(Message):
        key: str = ""  # 4+
        node_id: int = 0  # 4+
        host: str = ""  # 4+
        port: int = 0  # 4+
        error_code: int = 0  # 4+
        error_message: str | None = ""  # 4+

    throttle_time_ms: int = 0  # 1+
    error_code: int = 0  # 0-3
    error_message: str | None = ""  # 1-3
    node_id: int = 0  # 0-3
    host: str = ""  # 0-3
    port: int = 0  # 0-3
    coordinators: Sequence[FindCoordinatorResponse.Coordinator] = ()  # 4+


def _read_find_coordinator_response_0(b, p):
    error_code, node_id = unpack_hi(b, p)
    host, p = read_string(b, p + 6)
    (port,) = unpack_i(b, p)
    return FindCoordinatorResponse(0, error_code, "", node_id, host, port), p + 4


def _read_find_coordinator_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_nullable_string(b, p + 6)
    (node_id,) = unpack_i(b, p)
    host, p = read_string(b, p + 4)
    (port,) = unpack_i(b, p)
    return FindCoordinatorResponse(
        throttle_time_ms, error_code, error_message, node_id, host, port
    ), p + 4


def _read_find_coordinator_response_3(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    return FindCoordinatorResponse(
        throttle_time_ms, error_code, error_message, node_id, host, port
    ), skip_tags(b, p + 4)


def _read_find_coordinator_response_coordinator_4(b, p):
    key, p = read_compact_string(b, p)
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    port, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    return FindCoordinatorResponse.Coordinator(
        key, node_id, host, port, error_code, error_message
    ), skip_tags(b, p)


def _read_find_coordinator_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    coordinators, p = read_compact_array(
        b, p + 4, 14, _read_find_coordinator_response_coordinator_4
    )
    return FindCoordinatorResponse(throttle_time_ms, 0, "", 0, "", 0, coordinators), skip_tags(b, p)


def _write_find_coordinator_response_0(w, o):
    w(pack_hi(o.error_code, o.node_id) + pack_string(o.host) + pack_i(o.port))


def _write_find_coordinator_response_1(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_nullable_string(o.error_message) +
        pack_i(o.node_id) + pack_string(o.host) + pack_i(o.port)
    )


def _write_find_coordinator_response_3(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_i(o.node_id) + pack_compact_string(o.host) + pack_ix(o.port)
    )


def _write_find_coordinator_response_coordinator_4(w, o):
    w(
        pack_compact_string(o.key) + pack_i(o.node_id) + pack_compact_string(o.host) +
        pack_ih(o.port, o.error_code) + pack_compact_nullable_string(o.error_message) + NO_TAGS
    )


def _write_find_coordinator_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.coordinators, _write_find_coordinator_response_coordinator_4)
    w(NO_TAGS)


FindCoordinatorResponse.readers = since(6, {
    0: _read_find_coordinator_response_0, 1: _read_find_coordinator_response_1, 3:
    _read_find_coordinator_response_3, 4: _read_find_coordinator_response_4
})
FindCoordinatorResponse.writers = since(6, {
    0: _write_find_coordinator_response_0, 1: _write_find_coordinator_response_1, 3:
    _write_find_coordinator_response_3, 4: _write_find_coordinator_response_4
})


# -- 11: JoinGroup -----------------------------------------------------------------------------


class JoinGroupRequest(ApiMessage):
    """API key 11, the request, versions 0-9."""

    class JoinGroupRequestProtocol(Message):
        name: str = ""
        metadata: bytes = b""

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1  # 1+
    member_id: str = ""
    group_instance_id: str | None = None  # 5+
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequest.JoinGroupRequestProtocol] = ()
    reason: str | None = None  # 8+


def _read_join_group_request_join_group_request_protocol_0(b, p):
    name, p = read_string(b, p)
    metadata, p = read_bytes(b, p)
    return JoinGroupRequest.JoinGroupRequestProtocol(name, metadata), p


def _read_join_group_request_0(b, p):
    group_id, p = read_string(b, p)
    (session_timeout_ms,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    protocol_type, p = read_string(b, p)
    protocols, p = read_array(b, p, 6, _read_join_group_request_join_group_request_protocol_0)
    return JoinGroupRequest(
        group_id, session_timeout_ms, -1, member_id, None, protocol_type, protocols
    ), p


def _read_join_group_request_1(b, p):
    group_id, p = read_string(b, p)
    session_timeout_ms, rebalance_timeout_ms = unpack_ii(b, p)
    member_id, p = read_string(b, p + 8)
    protocol_type, p = read_string(b, p)
    protocols, p = read_array(b, p, 6, _read_join_group_request_join_group_request_protocol_0)
    return JoinGroupRequest(
        group_id, session_timeout_ms, rebalance_timeout_ms, member_id, None, protocol_type,
        protocols
    ), p


def _read_join_group_request_5(b, p):
    group_id, p = read_string(b, p)
    session_timeout_ms, rebalance_timeout_ms = unpack_ii(b, p)
    member_id, p = read_string(b, p + 8)
    group_instance_id, p = read_nullable_string(b, p)
    protocol_type, p = read_string(b, p)
    protocols, p = read_array(b, p, 6, _read_join_group_request_join_group_request_protocol_0)
    return JoinGroupRequest(
        group_id, session_timeout_ms, rebalance_timeout_ms, member_id, group_instance_id,
        protocol_type, protocols
    ), p


def _read_join_group_request_join_group_request_protocol_6(b, p):
    name, p = read_compact_string(b, p)
    metadata, p = read_compact_bytes(b, p)
    return JoinGroupRequest.JoinGroupRequestProtocol(name, metadata), skip_tags(b, p)


def _read_join_group_request_6(b, p):
    group_id, p = read_compact_string(b, p)
    session_timeout_ms, rebalance_timeout_ms = unpack_ii(b, p)
    member_id, p = read_compact_string(b, p + 8)
    group_instance_id, p = read_compact_nullable_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    protocols, p = read_compact_array(
        b, p, 3, _read_join_group_request_join_group_request_protocol_6
    )
    return JoinGroupRequest(
        group_id, session_timeout_ms, rebalance_timeout_ms, member_id, group_instance_id,
        protocol_type, protocols
    ), skip_tags(b, p)


def _read_join_group_request_8(b, p):
    group_id, p = read_compact_string(b, p)
    session_timeout_ms, rebalance_timeout_ms = unpack_ii(b, p)
    member_id, p = read_compact_string(b, p + 8)
    group_instance_id, p = read_compact_nullable_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    protocols, p = read_compact_array(
        b, p, 3, _read_join_group_request_join_group_request_protocol_6
    )
    reason, p = read_compact_nullable_string(b, p)
    return JoinGroupRequest(
        group_id, session_timeout_ms, rebalance_timeout_ms, member_id, group_instance_id,
        protocol_type, protocols, reason
    ), skip_tags(b, p)


def _write_join_group_request_join_group_request_protocol_0(w, o):
    w(pack_string(o.name) + pack_bytes(o.metadata))


def _write_join_group_request_0(w, o):
    w(
        pack_string(o.group_id) + pack_i(o.session_timeout_ms) + pack_string(o.member_id) +
        pack_string(o.protocol_type)
    )
    write_array(w, o.protocols, _write_join_group_request_join_group_request_protocol_0)


def _write_join_group_request_1(w, o):
    w(
        pack_string(o.group_id) + pack_ii(o.session_timeout_ms, o.rebalance_timeout_ms) +
        pack_string(o.member_id) + pack_string(o.protocol_type)
    )
    write_array(w, o.protocols, _write_join_group_request_join_group_request_protocol_0)


def _write_join_group_request_5(w, o):
    w(
        pack_string(o.group_id) + pack_ii(o.session_timeout_ms, o.rebalance_timeout_ms) +
        pack_string(o.member_id) + pack_nullable_string(o.group_instance_id) +
        pack_string(o.protocol_type)
    )
    write_array(w, o.protocols, _write_join_group_request_join_group_request_protocol_0)


def _write_join_group_request_join_group_request_protocol_6(w, o):
    w(pack_compact_string(o.name) + pack_compact_bytes(o.metadata) + NO_TAGS)


def _write_join_group_request_6(w, o):
    w(
        pack_compact_string(o.group_id) + pack_ii(o.session_timeout_ms, o.rebalance_timeout_ms) +
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        pack_compact_string(o.protocol_type)
    )
    write_compact_array(w, o.protocols, _write_join_group_request_join_group_request_protocol_6)
    w(NO_TAGS)


def _write_join_group_request_8(w, o):
    w(
        pack_compact_string(o.group_id) + pack_ii(o.session_timeout_ms, o.rebalance_timeout_ms) +
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        pack_compact_string(o.protocol_type)
    )
    write_compact_array(w, o.protocols, _write_join_group_request_join_group_request_protocol_6)
    w(pack_compact_nullable_string(o.reason) + NO_TAGS)


JoinGroupRequest.readers = since(9, {
    0: _read_join_group_request_0, 1: _read_join_group_request_1, 5: _read_join_group_request_5, 6:
    _read_join_group_request_6, 8: _read_join_group_request_8
})
JoinGroupRequest.writers = since(9, {
    0: _write_join_group_request_0, 1: _write_join_group_request_1, 5: _write_join_group_request_5,
    6: _write_join_group_request_6, 8: _write_join_group_request_8
})


class JoinGroupResponse(ApiMessage):
    """API key 11, the response, versions 0-9."""

    class JoinGroupResponseMember(Message):
        member_id: str = ""
        group_instance_id: str | None = None  # 5+
        metadata: bytes = b""

    throttle_time_ms: int = 0  # 2+
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None  # 7+
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False  # 9+
    member_id: str = ""
    members: Sequence[JoinGroupResponse.JoinGroupResponseMember] = ()


def _read_join_group_response_join_group_response_member_0(b, p):
    member_id, p = read_string(b, p)
    metadata, p = read_bytes(b, p)
    return JoinGroupResponse.JoinGroupResponseMember(member_id, None, metadata), p


def _read_join_group_response_0(b, p):
    error_code, generation_id = unpack_hi(b, p)
    protocol_name, p = read_string(b, p + 6)
    leader, p = read_string(b, p)
    member_id, p = read_string(b, p)
    members, p = read_array(b, p, 6, _read_join_group_response_join_group_response_member_0)
    return JoinGroupResponse(
        0, error_code, generation_id, None, protocol_name, leader, False, member_id, members
    ), p


def _read_join_group_response_2(b, p):
    throttle_time_ms, error_code, generation_id = unpack_ihi(b, p)
    protocol_name, p = read_string(b, p + 10)
    leader, p = read_string(b, p)
    member_id, p = read_string(b, p)
    members, p = read_array(b, p, 6, _read_join_group_response_join_group_response_member_0)
    return JoinGroupResponse(
        throttle_time_ms, error_code, generation_id, None, protocol_name, leader, False, member_id,
        members
    ), p


def _read_join_group_response_join_group_response_member_5(b, p):
    member_id, p = read_string(b, p)
    group_instance_id, p = read_nullable_string(b, p)
    metadata, p = read_bytes(b, p)
    return JoinGroupResponse.JoinGroupResponseMember(member_id, group_instance_id, metadata), p


def _read_join_group_response_5(b, p):
    throttle_time_ms, error_code, generation_id = unpack_ihi(b, p)
    protocol_name, p = read_string(b, p + 10)
    leader, p = read_string(b, p)
    member_id, p = read_string(b, p)
    members, p = read_array(b, p, 8, _read_join_group_response_join_group_response_member_5)
    return JoinGroupResponse(
        throttle_time_ms, error_code, generation_id, None, protocol_name, leader, False, member_id,
        members
    ), p


def _read_join_group_response_join_group_response_member_6(b, p):
    member_id, p = read_compact_string(b, p)
    group_instance_id, p = read_compact_nullable_string(b, p)
    metadata, p = read_compact_bytes(b, p)
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id, group_instance_id, metadata
    ), skip_tags(b, p)


def _read_join_group_response_6(b, p):
    throttle_time_ms, error_code, generation_id = unpack_ihi(b, p)
    protocol_name, p = read_compact_string(b, p + 10)
    leader, p = read_compact_string(b, p)
    member_id, p = read_compact_string(b, p)
    members, p = read_compact_array(b, p, 4, _read_join_group_response_join_group_response_member_6)
    return JoinGroupResponse(
        throttle_time_ms, error_code, generation_id, None, protocol_name, leader, False, member_id,
        members
    ), skip_tags(b, p)


def _read_join_group_response_7(b, p):
    throttle_time_ms, error_code, generation_id = unpack_ihi(b, p)
    protocol_type, p = read_compact_nullable_string(b, p + 10)
    protocol_name, p = read_compact_nullable_string(b, p)
    leader, p = read_compact_string(b, p)
    member_id, p = read_compact_string(b, p)
    members, p = read_compact_array(b, p, 4, _read_join_group_response_join_group_response_member_6)
    return JoinGroupResponse(
        throttle_time_ms, error_code, generation_id, protocol_type, protocol_name, leader, False,
        member_id, members
    ), skip_tags(b, p)


def _read_join_group_response_9(b, p):
    throttle_time_ms, error_code, generation_id = unpack_ihi(b, p)
    protocol_type, p = read_compact_nullable_string(b, p + 10)
    protocol_name, p = read_compact_nullable_string(b, p)
    leader, p = read_compact_string(b, p)
    (skip_assignment,) = unpack_t(b, p)
    member_id, p = read_compact_string(b, p + 1)
    members, p = read_compact_array(b, p, 4, _read_join_group_response_join_group_response_member_6)
    return JoinGroupResponse(
        throttle_time_ms, error_code, generation_id, protocol_type, protocol_name, leader,
        skip_assignment, member_id, members
    ), skip_tags(b, p)


def _write_join_group_response_join_group_response_member_0(w, o):
    w(pack_string(o.member_id) + pack_bytes(o.metadata))


def _write_join_group_response_0(w, o):
    w(
        pack_hi(o.error_code, o.generation_id) + pack_string(o.protocol_name) +
        pack_string(o.leader) + pack_string(o.member_id)
    )
    write_array(w, o.members, _write_join_group_response_join_group_response_member_0)


def _write_join_group_response_2(w, o):
    w(
        pack_ihi(o.throttle_time_ms, o.error_code, o.generation_id) + pack_string(o.protocol_name) +
        pack_string(o.leader) + pack_string(o.member_id)
    )
    write_array(w, o.members, _write_join_group_response_join_group_response_member_0)


def _write_join_group_response_join_group_response_member_5(w, o):
    w(pack_string(o.member_id) + pack_nullable_string(o.group_instance_id) + pack_bytes(o.metadata))


def _write_join_group_response_5(w, o):
    w(
        pack_ihi(o.throttle_time_ms, o.error_code, o.generation_id) + pack_string(o.protocol_name) +
        pack_string(o.leader) + pack_string(o.member_id)
    )
    write_array(w, o.members, _write_join_group_response_join_group_response_member_5)


def _write_join_group_response_join_group_response_member_6(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        pack_compact_bytes(o.metadata) + NO_TAGS
    )


def _write_join_group_response_6(w, o):
    w(
        pack_ihi(o.throttle_time_ms, o.error_code, o.generation_id) +
        pack_compact_string(o.protocol_name) + pack_compact_string(o.leader) +
        pack_compact_string(o.member_id)
    )
    write_compact_array(w, o.members, _write_join_group_response_join_group_response_member_6)
    w(NO_TAGS)


def _write_join_group_response_7(w, o):
    w(
        pack_ihi(o.throttle_time_ms, o.error_code, o.generation_id) +
        pack_compact_nullable_string(o.protocol_type) +
        pack_compact_nullable_string(o.protocol_name) + pack_compact_string(o.leader) +
        pack_compact_string(o.member_id)
    )
    write_compact_array(w, o.members, _write_join_group_response_join_group_response_member_6)
    w(NO_TAGS)


def _write_join_group_response_9(w, o):
    w(
        pack_ihi(o.throttle_time_ms, o.error_code, o.generation_id) +
        pack_compact_nullable_string(o.protocol_type) +
        pack_compact_nullable_string(o.protocol_name) + pack_compact_string(o.leader) +
        pack_t(o.skip_assignment) + pack_compact_string(o.member_id)
    )
    write_compact_array(w, o.members, _write_join_group_response_join_group_response_member_6)
    w(NO_TAGS)


JoinGroupResponse.readers = since(9, {
    0: _read_join_group_response_0, 2: _read_join_group_response_2, 5: _read_join_group_response_5,
    6: _read_join_group_response_6, 7: _read_join_group_response_7, 9: _read_join_group_response_9
})
JoinGroupResponse.writers = since(9, {
    0: _write_join_group_response_0, 2: _write_join_group_response_2, 5:
    _write_join_group_response_5, 6: _write_join_group_response_6, 7: _write_join_group_response_7,
    9: _write_join_group_response_9
})


# -- 12: Heartbeat -----------------------------------------------------------------------------


class HeartbeatRequest(ApiMessage):
    """API key 12, the request, versions 0-4."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # 3+


def _read_heartbeat_request_0(b, p):
    group_id, p = read_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    return HeartbeatRequest(group_id, generation_id, member_id), p


def _read_heartbeat_request_3(b, p):
    group_id, p = read_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    group_instance_id, p = read_nullable_string(b, p)
    return HeartbeatRequest(group_id, generation_id, member_id, group_instance_id), p


def _read_heartbeat_request_4(b, p):
    group_id, p = read_compact_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_compact_string(b, p + 4)
    group_instance_id, p = read_compact_nullable_string(b, p)
    return HeartbeatRequest(group_id, generation_id, member_id, group_instance_id), skip_tags(b, p)


def _write_heartbeat_request_0(w, o):
    w(pack_string(o.group_id) + pack_i(o.generation_id) + pack_string(o.member_id))


def _write_heartbeat_request_3(w, o):
    w(
        pack_string(o.group_id) + pack_i(o.generation_id) + pack_string(o.member_id) +
        pack_nullable_string(o.group_instance_id)
    )


def _write_heartbeat_request_4(w, o):
    w(
        pack_compact_string(o.group_id) + pack_i(o.generation_id) + pack_compact_string(o.member_id)
        + pack_compact_nullable_string(o.group_instance_id) + NO_TAGS
    )


HeartbeatRequest.readers = since(4, {
    0: _read_heartbeat_request_0, 3: _read_heartbeat_request_3, 4: _read_heartbeat_request_4
})
HeartbeatRequest.writers = since(4, {
    0: _write_heartbeat_request_0, 3: _write_heartbeat_request_3, 4: _write_heartbeat_request_4
})


class HeartbeatResponse(ApiMessage):
    """API key 12, the response, versions 0-4."""

    throttle_time_ms: int = 0  # 1+
    error_code: int = 0


def _read_heartbeat_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    return HeartbeatResponse(0, error_code), p + 2


def _read_heartbeat_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    return HeartbeatResponse(throttle_time_ms, error_code), p + 6


def _read_heartbeat_response_4(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    return HeartbeatResponse(throttle_time_ms, error_code), skip_tags(b, p + 6)


def _write_heartbeat_response_0(w, o):
    w(pack_h(o.error_code))


def _write_heartbeat_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))


def _write_heartbeat_response_4(w, o):
    w(pack_ihx(o.throttle_time_ms, o.error_code))


HeartbeatResponse.readers = since(4, {
    0: _read_heartbeat_response_0, 1: _read_heartbeat_response_1, 4: _read_heartbeat_response_4
})
HeartbeatResponse.writers = since(4, {
    0: _write_heartbeat_response_0, 1: _write_heartbeat_response_1, 4: _write_heartbeat_response_4
})


# -- 13: LeaveGroup ----------------------------------------------------------------------------


class LeaveGroupRequest(ApiMessage):
    """API key 13, the request, versions 0-5."""

    class MemberIdentity(Message):
        member_id: str = ""  # 3+
        group_instance_id: str | None = None  # 3+
        reason: str | None = None  # 5+

    group_id: str = ""
    member_id: str = ""  # 0-2
    members: Sequence[LeaveGroupRequest.MemberIdentity] = ()  # 3+


def _read_leave_group_request_0(b, p):
    group_id, p = read_string(b, p)
    member_id, p = read_string(b, p)
    return LeaveGroupRequest(group_id, member_id), p


def _read_leave_group_request_member_identity_3(b, p):
    member_id, p = read_string(b, p)
    group_instance_id, p = read_nullable_string(b, p)
    return LeaveGroupRequest.MemberIdentity(member_id, group_instance_id), p


def _read_leave_group_request_3(b, p):
    group_id, p = read_string(b, p)
    members, p = read_array(b, p, 4, _read_leave_group_request_member_identity_3)
    return LeaveGroupRequest(group_id, "", members), p


def _read_leave_group_request_member_identity_4(b, p):
    member_id, p = read_compact_string(b, p)
    group_instance_id, p = read_compact_nullable_string(b, p)
    return LeaveGroupRequest.MemberIdentity(member_id, group_instance_id), skip_tags(b, p)


def _read_leave_group_request_4(b, p):
    group_id, p = read_compact_string(b, p)
    members, p = read_compact_array(b, p, 3, _read_leave_group_request_member_identity_4)
    return LeaveGroupRequest(group_id, "", members), skip_tags(b, p)


def _read_leave_group_request_member_identity_5(b, p):
    member_id, p = read_compact_string(b, p)
    group_instance_id, p = read_compact_nullable_string(b, p)
    reason, p = read_compact_nullable_string(b, p)
    return LeaveGroupRequest.MemberIdentity(member_id, group_instance_id, reason), skip_tags(b, p)


def _read_leave_group_request_5(b, p):
    group_id, p = read_compact_string(b, p)
    members, p = read_compact_array(b, p, 4, _read_leave_group_request_member_identity_5)
    return LeaveGroupRequest(group_id, "", members), skip_tags(b, p)


def _write_leave_group_request_0(w, o):
    w(pack_string(o.group_id) + pack_string(o.member_id))


def _write_leave_group_request_member_identity_3(w, o):
    w(pack_string(o.member_id) + pack_nullable_string(o.group_instance_id))


def _write_leave_group_request_3(w, o):
    w(pack_string(o.group_id))
    write_array(w, o.members, _write_leave_group_request_member_identity_3)


def _write_leave_group_request_member_identity_4(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        NO_TAGS
    )


def _write_leave_group_request_4(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_array(w, o.members, _write_leave_group_request_member_identity_4)
    w(NO_TAGS)


def _write_leave_group_request_member_identity_5(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        pack_compact_nullable_string(o.reason) + NO_TAGS
    )


def _write_leave_group_request_5(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_array(w, o.members, _write_leave_group_request_member_identity_5)
    w(NO_TAGS)


LeaveGroupRequest.readers = since(5, {
    0: _read_leave_group_request_0, 3: _read_leave_group_request_3, 4: _read_leave_group_request_4,
    5: _read_leave_group_request_5
})
LeaveGroupRequest.writers = since(5, {
    0: _write_leave_group_request_0, 3: _write_leave_group_request_3, 4:
    _write_leave_group_request_4, 5: _write_leave_group_request_5
})


class LeaveGroupResponse(ApiMessage):
    """API key 13, the response, versions 0-5."""

    class MemberResponse(Message):
        member_id: str = ""  # 3+
        group_instance_id: str | None = ""  # 3+
        error_code: int = 0  # 3+

    throttle_time_ms: int = 0  # 1+
    error_code: int = 0
    members: Sequence[LeaveGroupResponse.MemberResponse] = ()  # 3+


def _read_leave_group_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    return LeaveGroupResponse(0, error_code), p + 2


def _read_leave_group_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    return LeaveGroupResponse(throttle_time_ms, error_code), p + 6


def _read_leave_group_response_member_response_3(b, p):
    member_id, p = read_string(b, p)
    group_instance_id, p = read_nullable_string(b, p)
    (error_code,) = unpack_h(b, p)
    return LeaveGroupResponse.MemberResponse(member_id, group_instance_id, error_code), p + 2


def _read_leave_group_response_3(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    members, p = read_array(b, p + 6, 6, _read_leave_group_response_member_response_3)
    return LeaveGroupResponse(throttle_time_ms, error_code, members), p


def _read_leave_group_response_member_response_4(b, p):
    member_id, p = read_compact_string(b, p)
    group_instance_id, p = read_compact_nullable_string(b, p)
    (error_code,) = unpack_h(b, p)
    return LeaveGroupResponse.MemberResponse(
        member_id, group_instance_id, error_code
    ), skip_tags(b, p + 2)


def _read_leave_group_response_4(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    members, p = read_compact_array(b, p + 6, 5, _read_leave_group_response_member_response_4)
    return LeaveGroupResponse(throttle_time_ms, error_code, members), skip_tags(b, p)


def _write_leave_group_response_0(w, o):
    w(pack_h(o.error_code))


def _write_leave_group_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))


def _write_leave_group_response_member_response_3(w, o):
    w(pack_string(o.member_id) + pack_nullable_string(o.group_instance_id) + pack_h(o.error_code))


def _write_leave_group_response_3(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_array(w, o.members, _write_leave_group_response_member_response_3)


def _write_leave_group_response_member_response_4(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        pack_hx(o.error_code)
    )


def _write_leave_group_response_4(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(w, o.members, _write_leave_group_response_member_response_4)
    w(NO_TAGS)


LeaveGroupResponse.readers = since(5, {
    0: _read_leave_group_response_0, 1: _read_leave_group_response_1, 3:
    _read_leave_group_response_3, 4: _read_leave_group_response_4
})
LeaveGroupResponse.writers = since(5, {
    0: _write_leave_group_response_0, 1: _write_leave_group_response_1, 3:
    _write_leave_group_response_3, 4: _write_leave_group_response_4
})


# -- 14: SyncGroup -----------------------------------------------------------------------------


class SyncGroupRequest(ApiMessage):
    """API key 14, the request, versions 0-5."""

    class SyncGroupRequestAssignment(Message):
        member_id: str = ""
        assignment: bytes = b""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # 3+
    protocol_type: str | None = None  # 5+
    protocol_name: str | None = None  # 5+
    assignments: Sequence[SyncGroupRequest.SyncGroupRequestAssignment] = ()


def _read_sync_group_request_sync_group_request_assignment_0(b, p):
    member_id, p = read_string(b, p)
    assignment, p = read_bytes(b, p)
    return SyncGroupRequest.SyncGroupRequestAssignment(member_id, assignment), p


def _read_sync_group_request_0(b, p):
    group_id, p = read_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    assignments, p = read_array(b, p, 6, _read_sync_group_request_sync_group_request_assignment_0)
    return SyncGroupRequest(group_id, generation_id, member_id, None, None, None, assignments), p


def _read_sync_group_request_3(b, p):
    group_id, p = read_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_string(b, p + 4)
    group_instance_id, p = read_nullable_string(b, p)
    assignments, p = read_array(b, p, 6, _read_sync_group_request_sync_group_request_assignment_0)
    return SyncGroupRequest(
        group_id, generation_id, member_id, group_instance_id, None, None, assignments
    ), p


def _read_sync_group_request_sync_group_request_assignment_4(b, p):
    member_id, p = read_compact_string(b, p)
    assignment, p = read_compact_bytes(b, p)
    return SyncGroupRequest.SyncGroupRequestAssignment(member_id, assignment), skip_tags(b, p)


def _read_sync_group_request_4(b, p):
    group_id, p = read_compact_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_compact_string(b, p + 4)
    group_instance_id, p = read_compact_nullable_string(b, p)
    assignments, p = read_compact_array(
        b, p, 3, _read_sync_group_request_sync_group_request_assignment_4
    )
    return SyncGroupRequest(
        group_id, generation_id, member_id, group_instance_id, None, None, assignments
    ), skip_tags(b, p)


def _read_sync_group_request_5(b, p):
    group_id, p = read_compact_string(b, p)
    (generation_id,) = unpack_i(b, p)
    member_id, p = read_compact_string(b, p + 4)
    group_instance_id, p = read_compact_nullable_string(b, p)
    protocol_type, p = read_compact_nullable_string(b, p)
    protocol_name, p = read_compact_nullable_string(b, p)
    assignments, p = read_compact_array(
        b, p, 3, _read_sync_group_request_sync_group_request_assignment_4
    )
    return SyncGroupRequest(
        group_id, generation_id, member_id, group_instance_id, protocol_type, protocol_name,
        assignments
    ), skip_tags(b, p)


def _write_sync_group_request_sync_group_request_assignment_0(w, o):
    w(pack_string(o.member_id) + pack_bytes(o.assignment))


def _write_sync_group_request_0(w, o):
    w(pack_string(o.group_id) + pack_i(o.generation_id) + pack_string(o.member_id))
    write_array(w, o.assignments, _write_sync_group_request_sync_group_request_assignment_0)


def _write_sync_group_request_3(w, o):
    w(
        pack_string(o.group_id) + pack_i(o.generation_id) + pack_string(o.member_id) +
        pack_nullable_string(o.group_instance_id)
    )
    write_array(w, o.assignments, _write_sync_group_request_sync_group_request_assignment_0)


def _write_sync_group_request_sync_group_request_assignment_4(w, o):
    w(pack_compact_string(o.member_id) + pack_compact_bytes(o.assignment) + NO_TAGS)


def _write_sync_group_request_4(w, o):
    w(
        pack_compact_string(o.group_id) + pack_i(o.generation_id) + pack_compact_string(o.member_id)
        + pack_compact_nullable_string(o.group_instance_id)
    )
    write_compact_array(w, o.assignments, _write_sync_group_request_sync_group_request_assignment_4)
    w(NO_TAGS)


def _write_sync_group_request_5(w, o):
    w(
        pack_compact_string(o.group_id) + pack_i(o.generation_id) + pack_compact_string(o.member_id)
        + pack_compact_nullable_string(o.group_instance_id) +
        pack_compact_nullable_string(o.protocol_type) +
        pack_compact_nullable_string(o.protocol_name)
    )
    write_compact_array(w, o.assignments, _write_sync_group_request_sync_group_request_assignment_4)
    w(NO_TAGS)


SyncGroupRequest.readers = since(5, {
    0: _read_sync_group_request_0, 3: _read_sync_group_request_3, 4: _read_sync_group_request_4, 5:
    _read_sync_group_request_5
})
SyncGroupRequest.writers = since(5, {
    0: _write_sync_group_request_0, 3: _write_sync_group_request_3, 4: _write_sync_group_request_4,
    5: _write_sync_group_request_5
})


class SyncGroupResponse(ApiMessage):
    """API key 14, the response, versions 0-5."""

    throttle_time_ms: int = 0  # 1+
    error_code: int = 0
    protocol_type: str | None = None  # 5+
    protocol_name: str | None = None  # 5+
    assignment: bytes = b""


def _read_sync_group_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    assignment, p = read_bytes(b, p + 2)
    return SyncGroupResponse(0, error_code, None, None, assignment), p


def _read_sync_group_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    assignment, p = read_bytes(b, p + 6)
    return SyncGroupResponse(throttle_time_ms, error_code, None, None, assignment), p


def _read_sync_group_response_4(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    assignment, p = read_compact_bytes(b, p + 6)
    return SyncGroupResponse(throttle_time_ms, error_code, None, None, assignment), skip_tags(b, p)


def _read_sync_group_response_5(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    protocol_type, p = read_compact_nullable_string(b, p + 6)
    protocol_name, p = read_compact_nullable_string(b, p)
    assignment, p = read_compact_bytes(b, p)
    return SyncGroupResponse(
        throttle_time_ms, error_code, protocol_type, protocol_name, assignment
    ), skip_tags(b, p)


def _write_sync_group_response_0(w, o):
    w(pack_h(o.error_code) + pack_bytes(o.assignment))


def _write_sync_group_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_bytes(o.assignment))


def _write_sync_group_response_4(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_bytes(o.assignment) + NO_TAGS)


def _write_sync_group_response_5(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.protocol_type) +
        pack_compact_nullable_string(o.protocol_name) + pack_compact_bytes(o.assignment) + NO_TAGS
    )


SyncGroupResponse.readers = since(5, {
    0: _read_sync_group_response_0, 1: _read_sync_group_response_1, 4: _read_sync_group_response_4,
    5: _read_sync_group_response_5
})
SyncGroupResponse.writers = since(5, {
    0: _write_sync_group_response_0, 1: _write_sync_group_response_1, 4:
    _write_sync_group_response_4, 5: _write_sync_group_response_5
})


# -- 15: DescribeGroups ------------------------------------------------------------------------


class DescribeGroupsRequest(ApiMessage):
    """API key 15, the request, versions 0-6."""

    groups: Sequence[str] = ()
    include_authorized_operations: bool = False  # 3+


def _read_describe_groups_request_0(b, p):
    groups, p = read_array(b, p, 2, read_string)
    return DescribeGroupsRequest(groups), p


def _read_describe_groups_request_3(b, p):
    groups, p = read_array(b, p, 2, read_string)
    (include_authorized_operations,) = unpack_t(b, p)
    return DescribeGroupsRequest(groups, include_authorized_operations), p + 1


def _read_describe_groups_request_5(b, p):
    groups, p = read_compact_array(b, p, 1, read_compact_string)
    (include_authorized_operations,) = unpack_t(b, p)
    return DescribeGroupsRequest(groups, include_authorized_operations), skip_tags(b, p + 1)


def _write_describe_groups_request_0(w, o):
    w(pack_array(o.groups, pack_string))


def _write_describe_groups_request_3(w, o):
    w(pack_array(o.groups, pack_string) + pack_t(o.include_authorized_operations))


def _write_describe_groups_request_5(w, o):
    w(pack_compact_array(o.groups, pack_compact_string) + pack_tx(o.include_authorized_operations))


DescribeGroupsRequest.readers = since(6, {
    0: _read_describe_groups_request_0, 3: _read_describe_groups_request_3, 5:
    _read_describe_groups_request_5
})
DescribeGroupsRequest.writers = since(6, {
    0: _write_describe_groups_request_0, 3: _write_describe_groups_request_3, 5:
    _write_describe_groups_request_5
})


class DescribeGroupsResponse(ApiMessage):
    """API key 15, the response, versions 0-6."""

    class DescribedGroupMember(Message):
        member_id: str = ""
        group_instance_id: str | None = None  # 4+
        client_id: str = ""
        client_host: str = ""
        member_metadata: bytes = b""
        member_assignment: bytes = b""

    class DescribedGroup(Message):
        error_code: int = 0
        error_message: str | None = None  # 6+
        group_id: str = ""
        group_state: str = ""
        protocol_type: str = ""
        protocol_data: str = ""
        members: Sequence[DescribeGroupsResponse.DescribedGroupMember] = ()
        authorized_operations: int = -2147483648  # 3+

    throttle_time_ms: int = 0  # 1+
    groups: Sequence[DescribeGroupsResponse.DescribedGroup] = ()


def _read_describe_groups_response_described_group_member_0(b, p):
    member_id, p = read_string(b, p)
    client_id, p = read_string(b, p)
    client_host, p = read_string(b, p)
    member_metadata, p = read_bytes(b, p)
    member_assignment, p = read_bytes(b, p)
    return DescribeGroupsResponse.DescribedGroupMember(
        member_id, None, client_id, client_host, member_metadata, member_assignment
    ), p


def _read_describe_groups_response_described_group_0(b, p):
    (error_code,) = unpack_h(b, p)
    group_id, p = read_string(b, p + 2)
    group_state, p = read_string(b, p)
    protocol_type, p = read_string(b, p)
    protocol_data, p = read_string(b, p)
    members, p = read_array(b, p, 14, _read_describe_groups_response_described_group_member_0)
    return DescribeGroupsResponse.DescribedGroup(
        error_code, None, group_id, group_state, protocol_type, protocol_data, members
    ), p


def _read_describe_groups_response_0(b, p):
    groups, p = read_array(b, p, 14, _read_describe_groups_response_described_group_0)
    return DescribeGroupsResponse(0, groups), p


def _read_describe_groups_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_array(b, p + 4, 14, _read_describe_groups_response_described_group_0)
    return DescribeGroupsResponse(throttle_time_ms, groups), p


def _read_describe_groups_response_described_group_3(b, p):
    (error_code,) = unpack_h(b, p)
    group_id, p = read_string(b, p + 2)
    group_state, p = read_string(b, p)
    protocol_type, p = read_string(b, p)
    protocol_data, p = read_string(b, p)
    members, p = read_array(b, p, 14, _read_describe_groups_response_described_group_member_0)
    (authorized_operations,) = unpack_i(b, p)
    return DescribeGroupsResponse.DescribedGroup(
        error_code, None, group_id, group_state, protocol_type, protocol_data, members,
        authorized_operations
    ), p + 4


def _read_describe_groups_response_3(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_array(b, p + 4, 18, _read_describe_groups_response_described_group_3)
    return DescribeGroupsResponse(throttle_time_ms, groups), p


def _read_describe_groups_response_described_group_member_4(b, p):
    member_id, p = read_string(b, p)
    group_instance_id, p = read_nullable_string(b, p)
    client_id, p = read_string(b, p)
    client_host, p = read_string(b, p)
    member_metadata, p = read_bytes(b, p)
    member_assignment, p = read_bytes(b, p)
    return DescribeGroupsResponse.DescribedGroupMember(
        member_id, group_instance_id, client_id, client_host, member_metadata, member_assignment
    ), p


def _read_describe_groups_response_described_group_4(b, p):
    (error_code,) = unpack_h(b, p)
    group_id, p = read_string(b, p + 2)
    group_state, p = read_string(b, p)
    protocol_type, p = read_string(b, p)
    protocol_data, p = read_string(b, p)
    members, p = read_array(b, p, 16, _read_describe_groups_response_described_group_member_4)
    (authorized_operations,) = unpack_i(b, p)
    return DescribeGroupsResponse.DescribedGroup(
        error_code, None, group_id, group_state, protocol_type, protocol_data, members,
        authorized_operations
    ), p + 4


def _read_describe_groups_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_array(b, p + 4, 18, _read_describe_groups_response_described_group_4)
    return DescribeGroupsResponse(throttle_time_ms, groups), p


def _read_describe_groups_response_described_group_member_5(b, p):
    member_id, p = read_compact_string(b, p)
    group_instance_id, p = read_compact_nullable_string(b, p)
    client_id, p = read_compact_string(b, p)
    client_host, p = read_compact_string(b, p)
    member_metadata, p = read_compact_bytes(b, p)
    member_assignment, p = read_compact_bytes(b, p)
    return DescribeGroupsResponse.DescribedGroupMember(
        member_id, group_instance_id, client_id, client_host, member_metadata, member_assignment
    ), skip_tags(b, p)


def _read_describe_groups_response_described_group_5(b, p):
    (error_code,) = unpack_h(b, p)
    group_id, p = read_compact_string(b, p + 2)
    group_state, p = read_compact_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    protocol_data, p = read_compact_string(b, p)
    members, p = read_compact_array(
        b, p, 7, _read_describe_groups_response_described_group_member_5
    )
    (authorized_operations,) = unpack_i(b, p)
    return DescribeGroupsResponse.DescribedGroup(
        error_code, None, group_id, group_state, protocol_type, protocol_data, members,
        authorized_operations
    ), skip_tags(b, p + 4)


def _read_describe_groups_response_5(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(b, p + 4, 12, _read_describe_groups_response_described_group_5)
    return DescribeGroupsResponse(throttle_time_ms, groups), skip_tags(b, p)


def _read_describe_groups_response_described_group_6(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    group_id, p = read_compact_string(b, p)
    group_state, p = read_compact_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    protocol_data, p = read_compact_string(b, p)
    members, p = read_compact_array(
        b, p, 7, _read_describe_groups_response_described_group_member_5
    )
    (authorized_operations,) = unpack_i(b, p)
    return DescribeGroupsResponse.DescribedGroup(
        error_code, error_message, group_id, group_state, protocol_type, protocol_data, members,
        authorized_operations
    ), skip_tags(b, p + 4)


def _read_describe_groups_response_6(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(b, p + 4, 13, _read_describe_groups_response_described_group_6)
    return DescribeGroupsResponse(throttle_time_ms, groups), skip_tags(b, p)


def _write_describe_groups_response_described_group_member_0(w, o):
    w(
        pack_string(o.member_id) + pack_string(o.client_id) + pack_string(o.client_host) +
        pack_bytes(o.member_metadata) + pack_bytes(o.member_assignment)
    )


def _write_describe_groups_response_described_group_0(w, o):
    w(
        pack_h(o.error_code) + pack_string(o.group_id) + pack_string(o.group_state) +
        pack_string(o.protocol_type) + pack_string(o.protocol_data)
    )
    write_array(w, o.members, _write_describe_groups_response_described_group_member_0)


def _write_describe_groups_response_0(w, o):
    write_array(w, o.groups, _write_describe_groups_response_described_group_0)


def _write_describe_groups_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.groups, _write_describe_groups_response_described_group_0)


def _write_describe_groups_response_described_group_3(w, o):
    w(
        pack_h(o.error_code) + pack_string(o.group_id) + pack_string(o.group_state) +
        pack_string(o.protocol_type) + pack_string(o.protocol_data)
    )
    write_array(w, o.members, _write_describe_groups_response_described_group_member_0)
    w(pack_i(o.authorized_operations))


def _write_describe_groups_response_3(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.groups, _write_describe_groups_response_described_group_3)


def _write_describe_groups_response_described_group_member_4(w, o):
    w(
        pack_string(o.member_id) + pack_nullable_string(o.group_instance_id) +
        pack_string(o.client_id) + pack_string(o.client_host) + pack_bytes(o.member_metadata) +
        pack_bytes(o.member_assignment)
    )


def _write_describe_groups_response_described_group_4(w, o):
    w(
        pack_h(o.error_code) + pack_string(o.group_id) + pack_string(o.group_state) +
        pack_string(o.protocol_type) + pack_string(o.protocol_data)
    )
    write_array(w, o.members, _write_describe_groups_response_described_group_member_4)
    w(pack_i(o.authorized_operations))


def _write_describe_groups_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.groups, _write_describe_groups_response_described_group_4)


def _write_describe_groups_response_described_group_member_5(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.group_instance_id) +
        pack_compact_string(o.client_id) + pack_compact_string(o.client_host) +
        pack_compact_bytes(o.member_metadata) + pack_compact_bytes(o.member_assignment) + NO_TAGS
    )


def _write_describe_groups_response_described_group_5(w, o):
    w(
        pack_h(o.error_code) + pack_compact_string(o.group_id) + pack_compact_string(o.group_state)
        + pack_compact_string(o.protocol_type) + pack_compact_string(o.protocol_data)
    )
    write_compact_array(w, o.members, _write_describe_groups_response_described_group_member_5)
    w(pack_ix(o.authorized_operations))


def _write_describe_groups_response_5(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.groups, _write_describe_groups_response_described_group_5)
    w(NO_TAGS)


def _write_describe_groups_response_described_group_6(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_string(o.group_id) + pack_compact_string(o.group_state) +
        pack_compact_string(o.protocol_type) + pack_compact_string(o.protocol_data)
    )
    write_compact_array(w, o.members, _write_describe_groups_response_described_group_member_5)
    w(pack_ix(o.authorized_operations))


def _write_describe_groups_response_6(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.groups, _write_describe_groups_response_described_group_6)
    w(NO_TAGS)


DescribeGroupsResponse.readers = since(6, {
    0: _read_describe_groups_response_0, 1: _read_describe_groups_response_1, 3:
    _read_describe_groups_response_3, 4: _read_describe_groups_response_4, 5:
    _read_describe_groups_response_5, 6: _read_describe_groups_response_6
})
DescribeGroupsResponse.writers = since(6, {
    0: _write_describe_groups_response_0, 1: _write_describe_groups_response_1, 3:
    _write_describe_groups_response_3, 4: _write_describe_groups_response_4, 5:
    _write_describe_groups_response_5, 6: _write_describe_groups_response_6
})


# -- 16: ListGroups ----------------------------------------------------------------------------


class ListGroupsRequest(ApiMessage):
    """API key 16, the request, versions 0-5."""

    states_filter: Sequence[str] = ()  # 4+
    types_filter: Sequence[str] = ()  # 5+


def _read_list_groups_request_0(b, p):
    return ListGroupsRequest(), p


def _read_list_groups_request_3(b, p):
    return ListGroupsRequest(), skip_tags(b, p)


def _read_list_groups_request_4(b, p):
    states_filter, p = read_compact_array(b, p, 1, read_compact_string)
    return ListGroupsRequest(states_filter), skip_tags(b, p)


def _read_list_groups_request_5(b, p):
    states_filter, p = read_compact_array(b, p, 1, read_compact_string)
    types_filter, p = read_compact_array(b, p, 1, read_compact_string)
    return ListGroupsRequest(states_filter, types_filter), skip_tags(b, p)


def _write_list_groups_request_0(w, o):
    pass


def _write_list_groups_request_3(w, o):
    w(NO_TAGS)


def _write_list_groups_request_4(w, o):
    w(pack_compact_array(o.states_filter, pack_compact_string) + NO_TAGS)


def _write_list_groups_request_5(w, o):
    w(
        pack_compact_array(o.states_filter, pack_compact_string) +
        pack_compact_array(o.types_filter, pack_compact_string) + NO_TAGS
    )


ListGroupsRequest.readers = since(5, {
    0: _read_list_groups_request_0, 3: _read_list_groups_request_3, 4: _read_list_groups_request_4,
    5: _read_list_groups_request_5
})
ListGroupsRequest.writers = since(5, {
    0: _write_list_groups_request_0, 3: _write_list_groups_request_3, 4:
    _write_list_groups_request_4, 5: _write_list_groups_request_5
})


class ListGroupsResponse(ApiMessage):
    """API key 16, the response, versions 0-5."""

    class ListedGroup(Message):
        group_id: str = ""
        protocol_type: str = ""
        group_state: str = ""  # 4+
        group_type: str = ""  # 5+

    throttle_time_ms: int = 0  # 1+
    error_code: int = 0
    groups: Sequence[ListGroupsResponse.ListedGroup] = ()


def _read_list_groups_response_listed_group_0(b, p):
    group_id, p = read_string(b, p)
    protocol_type, p = read_string(b, p)
    return ListGroupsResponse.ListedGroup(group_id, protocol_type), p


def _read_list_groups_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    groups, p = read_array(b, p + 2, 4, _read_list_groups_response_listed_group_0)
    return ListGroupsResponse(0, error_code, groups), p


def _read_list_groups_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    groups, p = read_array(b, p + 6, 4, _read_list_groups_response_listed_group_0)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), p


def _read_list_groups_response_listed_group_3(b, p):
    group_id, p = read_compact_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    return ListGroupsResponse.ListedGroup(group_id, protocol_type), skip_tags(b, p)


def _read_list_groups_response_3(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    groups, p = read_compact_array(b, p + 6, 3, _read_list_groups_response_listed_group_3)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), skip_tags(b, p)


def _read_list_groups_response_listed_group_4(b, p):
    group_id, p = read_compact_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    group_state, p = read_compact_string(b, p)
    return ListGroupsResponse.ListedGroup(group_id, protocol_type, group_state), skip_tags(b, p)


def _read_list_groups_response_4(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    groups, p = read_compact_array(b, p + 6, 4, _read_list_groups_response_listed_group_4)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), skip_tags(b, p)


def _read_list_groups_response_listed_group_5(b, p):
    group_id, p = read_compact_string(b, p)
    protocol_type, p = read_compact_string(b, p)
    group_state, p = read_compact_string(b, p)
    group_type, p = read_compact_string(b, p)
    return ListGroupsResponse.ListedGroup(
        group_id, protocol_type, group_state, group_type
    ), skip_tags(b, p)


def _read_list_groups_response_5(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    groups, p = read_compact_array(b, p + 6, 5, _read_list_groups_response_listed_group_5)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), skip_tags(b, p)


def _write_list_groups_response_listed_group_0(w, o):
    w(pack_string(o.group_id) + pack_string(o.protocol_type))


def _write_list_groups_response_0(w, o):
    w(pack_h(o.error_code))
    write_array(w, o.groups, _write_list_groups_response_listed_group_0)


def _write_list_groups_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_array(w, o.groups, _write_list_groups_response_listed_group_0)


def _write_list_groups_response_listed_group_3(w, o):
    w(pack_compact_string(o.group_id) + pack_compact_string(o.protocol_type) + NO_TAGS)


def _write_list_groups_response_3(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(w, o.groups, _write_list_groups_response_listed_group_3)
    w(NO_TAGS)


def _write_list_groups_response_listed_group_4(w, o):
    w(
        pack_compact_string(o.group_id) + pack_compact_string(o.protocol_type) +
        pack_compact_string(o.group_state) + NO_TAGS
    )


def _write_list_groups_response_4(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(w, o.groups, _write_list_groups_response_listed_group_4)
    w(NO_TAGS)


def _write_list_groups_response_listed_group_5(w, o):
    w(
        pack_compact_string(o.group_id) + pack_compact_string(o.protocol_type) +
        pack_compact_string(o.group_state) + pack_compact_string(o.group_type) + NO_TAGS
    )


def _write_list_groups_response_5(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(w, o.groups, _write_list_groups_response_listed_group_5)
    w(NO_TAGS)


ListGroupsResponse.readers = since(5, {
    0: _read_list_groups_response_0, 1: _read_list_groups_response_1, 3:
    _read_list_groups_response_3, 4: _read_list_groups_response_4, 5: _read_list_groups_response_5
})
ListGroupsResponse.writers = since(5, {
    0: _write_list_groups_response_0, 1: _write_list_groups_response_1, 3:
    _write_list_groups_response_3, 4: _write_list_groups_response_4, 5:
    _write_list_groups_response_5
})


# -- 17: SaslHandshake -------------------------------------------------------------------------


class SaslHandshakeRequest(ApiMessage):
    """API key 17, the request, versions 0-1."""

    mechanism: str = ""


def _read_sasl_handshake_request_0(b, p):
    mechanism, p = read_string(b, p)
    return SaslHandshakeRequest(mechanism), p


def _write_sasl_handshake_request_0(w, o):
    w(pack_string(o.mechanism))


SaslHandshakeRequest.readers = since(1, {0: _read_sasl_handshake_request_0})
SaslHandshakeRequest.writers = since(1, {0: _write_sasl_handshake_request_0})


class SaslHandshakeResponse(ApiMessage):
    """API key 17, the response, versions 0-1."""

    error_code: int = 0
    mechanisms: Sequence[str] = ()


def _read_sasl_handshake_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    mechanisms, p = read_array(b, p + 2, 2, read_string)
    return SaslHandshakeResponse(error_code, mechanisms), p


def _write_sasl_handshake_response_0(w, o):
    w(pack_h(o.error_code) + pack_array(o.mechanisms, pack_string))


SaslHandshakeResponse.readers = since(1, {0: _read_sasl_handshake_response_0})
SaslHandshakeResponse.writers = since(1, {0: _write_sasl_handshake_response_0})


# -- 18: ApiVersions ---------------------------------------------------------------------------


class ApiVersionsRequest(ApiMessage):
    """API key 18, the request, versions 0-4."""

    client_software_name: str = ""  # 3+
    client_software_version: str = ""  # 3+


def _read_api_versions_request_0(b, p):
    return ApiVersionsRequest(), p


def _read_api_versions_request_3(b, p):
    client_software_name, p = read_compact_string(b, p)
    client_software_version, p = read_compact_string(b, p)
    return ApiVersionsRequest(client_software_name, client_software_version), skip_tags(b, p)


def _write_api_versions_request_0(w, o):
    pass


def _write_api_versions_request_3(w, o):
    w(
        pack_compact_string(o.client_software_name) + pack_compact_string(o.client_software_version)
        + NO_TAGS
    )


ApiVersionsRequest.readers = since(4, {
    0: _read_api_versions_request_0, 3: _read_api_versions_request_3
})
ApiVersionsRequest.writers = since(4, {
    0: _write_api_versions_request_0, 3: _write_api_versions_request_3
})


class ApiVersionsResponse(ApiMessage):
    """API key 18, the response, versions 0-4."""

    class ApiVersion(Message):
        api_key: int = 0
        min_version: int = 0
        max_version: int = 0

    class SupportedFeatureKey(Message):
        name: str = ""  # 3+
        min_version: int = 0  # 3+
        max_version: int = 0  # 3+

    class FinalizedFeatureKey(Message):
        name: str = ""  # 3+
        max_version_level: int = 0  # 3+
        min_version_level: int = 0  # 3+

    error_code: int = 0
    api_keys: Sequence[ApiVersionsResponse.ApiVersion] = ()
    throttle_time_ms: int = 0  # 1+
    supported_features: Sequence[ApiVersionsResponse.SupportedFeatureKey] = ()  # 3+
    finalized_features_epoch: int = -1  # 3+
    finalized_features: Sequence[ApiVersionsResponse.FinalizedFeatureKey] = ()  # 3+
    zk_migration_ready: bool = False  # 3+


def _read_api_versions_response_api_version_0(b, p):
    api_key, min_version, max_version = unpack_hhh(b, p)
    return ApiVersionsResponse.ApiVersion(api_key, min_version, max_version), p + 6


def _read_api_versions_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    api_keys, p = read_array(b, p + 2, 6, _read_api_versions_response_api_version_0)
    return ApiVersionsResponse(error_code, api_keys), p


def _read_api_versions_response_1(b, p):
    (error_code,) = unpack_h(b, p)
    api_keys, p = read_array(b, p + 2, 6, _read_api_versions_response_api_version_0)
    (throttle_time_ms,) = unpack_i(b, p)
    return ApiVersionsResponse(error_code, api_keys, throttle_time_ms), p + 4


def _read_api_versions_response_api_version_3(b, p):
    api_key, min_version, max_version = unpack_hhh(b, p)
    return ApiVersionsResponse.ApiVersion(api_key, min_version, max_version), skip_tags(b, p + 6)


def _read_api_versions_response_supported_feature_key_3(b, p):
    name, p = read_compact_string(b, p)
    min_version, max_version = unpack_hh(b, p)
    return ApiVersionsResponse.SupportedFeatureKey(
        name, min_version, max_version
    ), skip_tags(b, p + 4)


def _read_api_versions_response_finalized_feature_key_3(b, p):
    name, p = read_compact_string(b, p)
    max_version_level, min_version_level = unpack_hh(b, p)
    return ApiVersionsResponse.FinalizedFeatureKey(
        name, max_version_level, min_version_level
    ), skip_tags(b, p + 4)


def _read_api_versions_response_3(b, p):
    (error_code,) = unpack_h(b, p)
    api_keys, p = read_compact_array(b, p + 2, 7, _read_api_versions_response_api_version_3)
    (throttle_time_ms,) = unpack_i(b, p)
    tags, p = read_tags(b, p + 4)
    supported_features = read_tag(
        tags[0], read_compact_array, 6, _read_api_versions_response_supported_feature_key_3
    ) if 0 in tags else ()
    finalized_features_epoch = read_tag(tags[1], read_number, "q") if 1 in tags else -1
    finalized_features = read_tag(
        tags[2], read_compact_array, 6, _read_api_versions_response_finalized_feature_key_3
    ) if 2 in tags else ()
    zk_migration_ready = read_tag(tags[3], read_number, "?") if 3 in tags else False
    return ApiVersionsResponse(
        error_code, api_keys, throttle_time_ms, supported_features, finalized_features_epoch,
        finalized_features, zk_migration_ready
    ), p


def _write_api_versions_response_api_version_0(w, o):
    w(pack_hhh(o.api_key, o.min_version, o.max_version))


def _write_api_versions_response_0(w, o):
    w(pack_h(o.error_code))
    write_array(w, o.api_keys, _write_api_versions_response_api_version_0)


def _write_api_versions_response_1(w, o):
    w(pack_h(o.error_code))
    write_array(w, o.api_keys, _write_api_versions_response_api_version_0)
    w(pack_i(o.throttle_time_ms))


def _write_api_versions_response_api_version_3(w, o):
    w(pack_hhhx(o.api_key, o.min_version, o.max_version))


def _write_api_versions_response_supported_feature_key_3(w, o):
    w(pack_compact_string(o.name) + pack_hhx(o.min_version, o.max_version))


def _write_api_versions_response_finalized_feature_key_3(w, o):
    w(pack_compact_string(o.name) + pack_hhx(o.max_version_level, o.min_version_level))


def _write_api_versions_response_3(w, o):
    w(pack_h(o.error_code))
    write_compact_array(w, o.api_keys, _write_api_versions_response_api_version_3)
    w(pack_i(o.throttle_time_ms))
    tags = []
    if o.supported_features:
        tags.append((0,
            written(write_compact_array, o.supported_features,
            _write_api_versions_response_supported_feature_key_3)
        ))
    if o.finalized_features_epoch != -1:
        tags.append((1, pack_number("q", o.finalized_features_epoch)))
    if o.finalized_features:
        tags.append((2,
            written(write_compact_array, o.finalized_features,
            _write_api_versions_response_finalized_feature_key_3)
        ))
    if o.zk_migration_ready:
        tags.append((3, pack_number("?", o.zk_migration_ready)))
    w(pack_tags(tags) if tags else NO_TAGS)


ApiVersionsResponse.readers = since(4, {
    0: _read_api_versions_response_0, 1: _read_api_versions_response_1, 3:
    _read_api_versions_response_3
})
ApiVersionsResponse.writers = since(4, {
    0: _write_api_versions_response_0, 1: _write_api_versions_response_1, 3:
    _write_api_versions_response_3
})


# -- 19: CreateTopics --------------------------------------------------------------------------


class CreateTopicsRequest(ApiMessage):
    """API key 19, the request, versions 2-7."""

    class CreatableReplicaAssignment(Message):
        partition_index: int = 0
        broker_ids: Sequence[int] = ()

    class CreatableTopicConfig(Message):
        name: str = ""
        value: str | None = ""

    class CreatableTopic(Message):
        name: str = ""
        num_partitions: int = 0
        replication_factor: int = 0
        assignments: Sequence[CreateTopicsRequest.CreatableReplicaAssignment] = ()
        configs: Sequence[CreateTopicsRequest.CreatableTopicConfig] = ()

    topics: Sequence[CreateTopicsRequest.CreatableTopic] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


def _read_create_topics_request_creatable_replica_assignment_2(b, p):
    (partition_index,) = unpack_i(b, p)
    broker_ids, p = read_numbers(b, p + 4, "i")
    return CreateTopicsRequest.CreatableReplicaAssignment(partition_index, broker_ids), p


def _read_create_topics_request_creatable_topic_config_2(b, p):
    name, p = read_string(b, p)
    value, p = read_nullable_string(b, p)
    return CreateTopicsRequest.CreatableTopicConfig(name, value), p


def _read_create_topics_request_creatable_topic_2(b, p):
    name, p = read_string(b, p)
    num_partitions, replication_factor = unpack_ih(b, p)
    assignments, p = read_array(
        b, p + 6, 8, _read_create_topics_request_creatable_replica_assignment_2
    )
    configs, p = read_array(b, p, 4, _read_create_topics_request_creatable_topic_config_2)
    return CreateTopicsRequest.CreatableTopic(
        name, num_partitions, replication_factor, assignments, configs
    ), p


def _read_create_topics_request_2(b, p):
    topics, p = read_array(b, p, 16, _read_create_topics_request_creatable_topic_2)
    timeout_ms, validate_only = unpack_it(b, p)
    return CreateTopicsRequest(topics, timeout_ms, validate_only), p + 5


def _read_create_topics_request_creatable_replica_assignment_5(b, p):
    (partition_index,) = unpack_i(b, p)
    broker_ids, p = read_compact_numbers(b, p + 4, "i")
    return CreateTopicsRequest.CreatableReplicaAssignment(
        partition_index, broker_ids
    ), skip_tags(b, p)


def _read_create_topics_request_creatable_topic_config_5(b, p):
    name, p = read_compact_string(b, p)
    value, p = read_compact_nullable_string(b, p)
    return CreateTopicsRequest.CreatableTopicConfig(name, value), skip_tags(b, p)


def _read_create_topics_request_creatable_topic_5(b, p):
    name, p = read_compact_string(b, p)
    num_partitions, replication_factor = unpack_ih(b, p)
    assignments, p = read_compact_array(
        b, p + 6, 6, _read_create_topics_request_creatable_replica_assignment_5
    )
    configs, p = read_compact_array(b, p, 3, _read_create_topics_request_creatable_topic_config_5)
    return CreateTopicsRequest.CreatableTopic(
        name, num_partitions, replication_factor, assignments, configs
    ), skip_tags(b, p)


def _read_create_topics_request_5(b, p):
    topics, p = read_compact_array(b, p, 10, _read_create_topics_request_creatable_topic_5)
    timeout_ms, validate_only = unpack_it(b, p)
    return CreateTopicsRequest(topics, timeout_ms, validate_only), skip_tags(b, p + 5)


def _write_create_topics_request_creatable_replica_assignment_2(w, o):
    w(pack_i(o.partition_index) + pack_numbers(o.broker_ids, "i"))


def _write_create_topics_request_creatable_topic_config_2(w, o):
    w(pack_string(o.name) + pack_nullable_string(o.value))


def _write_create_topics_request_creatable_topic_2(w, o):
    w(pack_string(o.name) + pack_ih(o.num_partitions, o.replication_factor))
    write_array(w, o.assignments, _write_create_topics_request_creatable_replica_assignment_2)
    write_array(w, o.configs, _write_create_topics_request_creatable_topic_config_2)


def _write_create_topics_request_2(w, o):
    write_array(w, o.topics, _write_create_topics_request_creatable_topic_2)
    w(pack_it(o.timeout_ms, o.validate_only))


def _write_create_topics_request_creatable_replica_assignment_5(w, o):
    w(pack_i(o.partition_index) + pack_compact_numbers(o.broker_ids, "i") + NO_TAGS)


def _write_create_topics_request_creatable_topic_config_5(w, o):
    w(pack_compact_string(o.name) + pack_compact_nullable_string(o.value) + NO_TAGS)


def _write_create_topics_request_creatable_topic_5(w, o):
    w(pack_compact_string(o.name) + pack_ih(o.num_partitions, o.replication_factor))
    write_compact_array(
        w, o.assignments, _write_create_topics_request_creatable_replica_assignment_5
    )
    write_compact_array(w, o.configs, _write_create_topics_request_creatable_topic_config_5)
    w(NO_TAGS)


def _write_create_topics_request_5(w, o):
    write_compact_array(w, o.topics, _write_create_topics_request_creatable_topic_5)
    w(pack_itx(o.timeout_ms, o.validate_only))


CreateTopicsRequest.readers = since(7, {
    2: _read_create_topics_request_2, 5: _read_create_topics_request_5
})
CreateTopicsRequest.writers = since(7, {
    2: _write_create_topics_request_2, 5: _write_create_topics_request_5
})


class CreateTopicsResponse(ApiMessage):
    """API key 19, the response, versions 2-7."""

    class CreatableTopicConfigs(Message):
        name: str = ""  # 5+
        value: str | None = ""  # 5+
        read_only: bool = False  # 5+
        config_source: int = -1  # 5+
        is_sensitive: bool = False  # 5+

    class CreatableTopicResult(Message):
        name: str = ""
        topic_id: UUID = ZERO_UUID  # 7+
        error_code: int = 0
        error_message: str | None = ""
        topic_config_error_code: int = 0  # 5+
        num_partitions: int = -1  # 5+
        replication_factor: int = -1  # 5+
        configs: Sequence[CreateTopicsResponse.CreatableTopicConfigs] | None = ()  # 5+

    throttle_time_ms: int = 0
    topics: Sequence[CreateTopicsResponse.CreatableTopicResult] = ()


def _read_create_topics_response_creatable_topic_result_2(b, p):
    name, p = read_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    return CreateTopicsResponse.CreatableTopicResult(name, ZERO_UUID, error_code, error_message), p


def _read_create_topics_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_create_topics_response_creatable_topic_result_2)
    return CreateTopicsResponse(throttle_time_ms, topics), p


def _read_create_topics_response_creatable_topic_configs_5(b, p):
    name, p = read_compact_string(b, p)
    value, p = read_compact_nullable_string(b, p)
    read_only, config_source, is_sensitive = unpack_tbt(b, p)
    return CreateTopicsResponse.CreatableTopicConfigs(
        name, value, read_only, config_source, is_sensitive
    ), skip_tags(b, p + 3)


def _read_create_topics_response_creatable_topic_result_5(b, p):
    name, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    num_partitions, replication_factor = unpack_ih(b, p)
    configs, p = read_compact_nullable_array(
        b, p + 6, 6, _read_create_topics_response_creatable_topic_configs_5
    )
    tags, p = read_tags(b, p)
    topic_config_error_code = read_tag(tags[0], read_number, "h") if 0 in tags else 0
    return CreateTopicsResponse.CreatableTopicResult(
        name, ZERO_UUID, error_code, error_message, topic_config_error_code, num_partitions,
        replication_factor, configs
    ), p


def _read_create_topics_response_5(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 12, _read_create_topics_response_creatable_topic_result_5
    )
    return CreateTopicsResponse(throttle_time_ms, topics), skip_tags(b, p)


def _read_create_topics_response_creatable_topic_result_7(b, p):
    name, p = read_compact_string(b, p)
    topic_id, error_code = unpack_uh(b, p)
    topic_id = uuid_of(topic_id)
    error_message, p = read_compact_nullable_string(b, p + 18)
    num_partitions, replication_factor = unpack_ih(b, p)
    configs, p = read_compact_nullable_array(
        b, p + 6, 6, _read_create_topics_response_creatable_topic_configs_5
    )
    tags, p = read_tags(b, p)
    topic_config_error_code = read_tag(tags[0], read_number, "h") if 0 in tags else 0
    return CreateTopicsResponse.CreatableTopicResult(
        name, topic_id, error_code, error_message, topic_config_error_code, num_partitions,
        replication_factor, configs
    ), p


def _read_create_topics_response_7(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 28, _read_create_topics_response_creatable_topic_result_7
    )
    return CreateTopicsResponse(throttle_time_ms, topics), skip_tags(b, p)


def _write_create_topics_response_creatable_topic_result_2(w, o):
    w(pack_string(o.name) + pack_h(o.error_code) + pack_nullable_string(o.error_message))


def _write_create_topics_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_create_topics_response_creatable_topic_result_2)


def _write_create_topics_response_creatable_topic_configs_5(w, o):
    w(
        pack_compact_string(o.name) + pack_compact_nullable_string(o.value) + pack_tbtx(o.read_only,
        o.config_source, o.is_sensitive)
    )


def _write_create_topics_response_creatable_topic_result_5(w, o):
    w(
        pack_compact_string(o.name) + pack_h(o.error_code) +
        pack_compact_nullable_string(o.error_message) + pack_ih(o.num_partitions,
        o.replication_factor)
    )
    write_compact_nullable_array(
        w, o.configs, _write_create_topics_response_creatable_topic_configs_5
    )
    tags = []
    if o.topic_config_error_code != 0:
        tags.append((0, pack_number("h", o.topic_config_error_code)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_create_topics_response_5(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_create_topics_response_creatable_topic_result_5)
    w(NO_TAGS)


def _write_create_topics_response_creatable_topic_result_7(w, o):
    w(
        pack_compact_string(o.name) + pack_uh(o.topic_id.bytes, o.error_code) +
        pack_compact_nullable_string(o.error_message) + pack_ih(o.num_partitions,
        o.replication_factor)
    )
    write_compact_nullable_array(
        w, o.configs, _write_create_topics_response_creatable_topic_configs_5
    )
    tags = []
    if o.topic_config_error_code != 0:
        tags.append((0, pack_number("h", o.topic_config_error_code)))
    w(pack_tags(tags) if tags else NO_TAGS)


def _write_create_topics_response_7(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_create_topics_response_creatable_topic_result_7)
    w(NO_TAGS)


CreateTopicsResponse.readers = since(7, {
    2: _read_create_topics_response_2, 5: _read_create_topics_response_5, 7:
    _read_create_topics_response_7
})
CreateTopicsResponse.writers = since(7, {
    2: _write_create_topics_response_2, 5: _write_create_topics_response_5, 7:
    _write_create_topics_response_7
})


# -- 20: DeleteTopics --------------------------------------------------------------------------


class DeleteTopicsRequest(ApiMessage):
    """API key 20, the request, versions 1-6."""

    class DeleteTopicState(Message):
        name: str | None = None  # 6+
        topic_id: UUID = ZERO_UUID  # 6+

    topics: Sequence[DeleteTopicsRequest.DeleteTopicState] = ()  # 6+
    topic_names: Sequence[str] = ()  # 1-5
    timeout_ms: int = 0


def _read_delete_topics_request_1(b, p):
    topic_names, p = read_array(b, p, 2, read_string)
    (timeout_ms,) = unpack_i(b, p)
    return DeleteTopicsRequest((), topic_names, timeout_ms), p + 4


def _read_delete_topics_request_4(b, p):
    topic_names, p = read_compact_array(b, p, 1, read_compact_string)
    (timeout_ms,) = unpack_i(b, p)
    return DeleteTopicsRequest((), topic_names, timeout_ms), skip_tags(b, p + 4)


def _read_delete_topics_request_delete_topic_state_6(b, p):
    name, p = read_compact_nullable_string(b, p)
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    return DeleteTopicsRequest.DeleteTopicState(name, topic_id), skip_tags(b, p + 16)


def _read_delete_topics_request_6(b, p):
    topics, p = read_compact_array(b, p, 18, _read_delete_topics_request_delete_topic_state_6)
    (timeout_ms,) = unpack_i(b, p)
    return DeleteTopicsRequest(topics, (), timeout_ms), skip_tags(b, p + 4)


def _write_delete_topics_request_1(w, o):
    w(pack_array(o.topic_names, pack_string) + pack_i(o.timeout_ms))


def _write_delete_topics_request_4(w, o):
    w(pack_compact_array(o.topic_names, pack_compact_string) + pack_ix(o.timeout_ms))


def _write_delete_topics_request_delete_topic_state_6(w, o):
    w(pack_compact_nullable_string(o.name) + pack_ux(o.topic_id.bytes))


def _write_delete_topics_request_6(w, o):
    write_compact_array(w, o.topics, _write_delete_topics_request_delete_topic_state_6)
    w(pack_ix(o.timeout_ms))


DeleteTopicsRequest.readers = since(6, {
    1: _read_delete_topics_request_1, 4: _read_delete_topics_request_4, 6:
    _read_delete_topics_request_6
})
DeleteTopicsRequest.writers = since(6, {
    1: _write_delete_topics_request_1, 4: _write_delete_topics_request_4, 6:
    _write_delete_topics_request_6
})


class DeleteTopicsResponse(ApiMessage):
    """API key 20, the response, versions 1-6."""

    class DeletableTopicResult(Message):
        name: str | None = ""
        topic_id: UUID = ZERO_UUID  # 6+
        error_code: int = 0
        error_message: str | None = None  # 5+

    throttle_time_ms: int = 0
    responses: Sequence[DeleteTopicsResponse.DeletableTopicResult] = ()


def _read_delete_topics_response_deletable_topic_result_1(b, p):
    name, p = read_string(b, p)
    (error_code,) = unpack_h(b, p)
    return DeleteTopicsResponse.DeletableTopicResult(name, ZERO_UUID, error_code), p + 2


def _read_delete_topics_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_array(b, p + 4, 4, _read_delete_topics_response_deletable_topic_result_1)
    return DeleteTopicsResponse(throttle_time_ms, responses), p


def _read_delete_topics_response_deletable_topic_result_4(b, p):
    name, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    return DeleteTopicsResponse.DeletableTopicResult(
        name, ZERO_UUID, error_code
    ), skip_tags(b, p + 2)


def _read_delete_topics_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_compact_array(
        b, p + 4, 4, _read_delete_topics_response_deletable_topic_result_4
    )
    return DeleteTopicsResponse(throttle_time_ms, responses), skip_tags(b, p)


def _read_delete_topics_response_deletable_topic_result_5(b, p):
    name, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    return DeleteTopicsResponse.DeletableTopicResult(
        name, ZERO_UUID, error_code, error_message
    ), skip_tags(b, p)


def _read_delete_topics_response_5(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_compact_array(
        b, p + 4, 5, _read_delete_topics_response_deletable_topic_result_5
    )
    return DeleteTopicsResponse(throttle_time_ms, responses), skip_tags(b, p)


def _read_delete_topics_response_deletable_topic_result_6(b, p):
    name, p = read_compact_nullable_string(b, p)
    topic_id, error_code = unpack_uh(b, p)
    topic_id = uuid_of(topic_id)
    error_message, p = read_compact_nullable_string(b, p + 18)
    return DeleteTopicsResponse.DeletableTopicResult(
        name, topic_id, error_code, error_message
    ), skip_tags(b, p)


def _read_delete_topics_response_6(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_compact_array(
        b, p + 4, 21, _read_delete_topics_response_deletable_topic_result_6
    )
    return DeleteTopicsResponse(throttle_time_ms, responses), skip_tags(b, p)


def _write_delete_topics_response_deletable_topic_result_1(w, o):
    w(pack_string(o.name) + pack_h(o.error_code))


def _write_delete_topics_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.responses, _write_delete_topics_response_deletable_topic_result_1)


def _write_delete_topics_response_deletable_topic_result_4(w, o):
    w(pack_compact_string(o.name) + pack_hx(o.error_code))


def _write_delete_topics_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.responses, _write_delete_topics_response_deletable_topic_result_4)
    w(NO_TAGS)


def _write_delete_topics_response_deletable_topic_result_5(w, o):
    w(
        pack_compact_string(o.name) + pack_h(o.error_code) +
        pack_compact_nullable_string(o.error_message) + NO_TAGS
    )


def _write_delete_topics_response_5(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.responses, _write_delete_topics_response_deletable_topic_result_5)
    w(NO_TAGS)


def _write_delete_topics_response_deletable_topic_result_6(w, o):
    w(
        pack_compact_nullable_string(o.name) + pack_uh(o.topic_id.bytes, o.error_code) +
        pack_compact_nullable_string(o.error_message) + NO_TAGS
    )


def _write_delete_topics_response_6(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.responses, _write_delete_topics_response_deletable_topic_result_6)
    w(NO_TAGS)


DeleteTopicsResponse.readers = since(6, {
    1: _read_delete_topics_response_1, 4: _read_delete_topics_response_4, 5:
    _read_delete_topics_response_5, 6: _read_delete_topics_response_6
})
DeleteTopicsResponse.writers = since(6, {
    1: _write_delete_topics_response_1, 4: _write_delete_topics_response_4, 5:
    _write_delete_topics_response_5, 6: _write_delete_topics_response_6
})


# -- 21: DeleteRecords -------------------------------------------------------------------------


class DeleteRecordsRequest(ApiMessage):
    """API key 21, the request, versions 0-2."""

    class DeleteRecordsPartition(Message):
        partition_index: int = 0
        offset: int = 0

    class DeleteRecordsTopic(Message):
        name: str = ""
        partitions: Sequence[DeleteRecordsRequest.DeleteRecordsPartition] = ()

    topics: Sequence[DeleteRecordsRequest.DeleteRecordsTopic] = ()
    timeout_ms: int = 0


def _read_delete_records_request_delete_records_partition_0(b, p):
    partition_index, offset = unpack_iq(b, p)
    return DeleteRecordsRequest.DeleteRecordsPartition(partition_index, offset), p + 12


def _read_delete_records_request_delete_records_topic_0(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(b, p, 12, _read_delete_records_request_delete_records_partition_0)
    return DeleteRecordsRequest.DeleteRecordsTopic(name, partitions), p


def _read_delete_records_request_0(b, p):
    topics, p = read_array(b, p, 6, _read_delete_records_request_delete_records_topic_0)
    (timeout_ms,) = unpack_i(b, p)
    return DeleteRecordsRequest(topics, timeout_ms), p + 4


def _read_delete_records_request_delete_records_partition_2(b, p):
    partition_index, offset = unpack_iq(b, p)
    return DeleteRecordsRequest.DeleteRecordsPartition(
        partition_index, offset
    ), skip_tags(b, p + 12)


def _read_delete_records_request_delete_records_topic_2(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 13, _read_delete_records_request_delete_records_partition_2
    )
    return DeleteRecordsRequest.DeleteRecordsTopic(name, partitions), skip_tags(b, p)


def _read_delete_records_request_2(b, p):
    topics, p = read_compact_array(b, p, 3, _read_delete_records_request_delete_records_topic_2)
    (timeout_ms,) = unpack_i(b, p)
    return DeleteRecordsRequest(topics, timeout_ms), skip_tags(b, p + 4)


def _write_delete_records_request_delete_records_partition_0(w, o):
    w(pack_iq(o.partition_index, o.offset))


def _write_delete_records_request_delete_records_topic_0(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_delete_records_request_delete_records_partition_0)


def _write_delete_records_request_0(w, o):
    write_array(w, o.topics, _write_delete_records_request_delete_records_topic_0)
    w(pack_i(o.timeout_ms))


def _write_delete_records_request_delete_records_partition_2(w, o):
    w(pack_iqx(o.partition_index, o.offset))


def _write_delete_records_request_delete_records_topic_2(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(w, o.partitions, _write_delete_records_request_delete_records_partition_2)
    w(NO_TAGS)


def _write_delete_records_request_2(w, o):
    write_compact_array(w, o.topics, _write_delete_records_request_delete_records_topic_2)
    w(pack_ix(o.timeout_ms))


DeleteRecordsRequest.readers = since(2, {
    0: _read_delete_records_request_0, 2: _read_delete_records_request_2
})
DeleteRecordsRequest.writers = since(2, {
    0: _write_delete_records_request_0, 2: _write_delete_records_request_2
})


class DeleteRecordsResponse(ApiMessage):
    """API key 21, the response, versions 0-2."""

    class DeleteRecordsPartitionResult(Message):
        partition_index: int = 0
        low_watermark: int = 0
        error_code: int = 0

    class DeleteRecordsTopicResult(Message):
        name: str = ""
        partitions: Sequence[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ()

    throttle_time_ms: int = 0
    topics: Sequence[DeleteRecordsResponse.DeleteRecordsTopicResult] = ()


def _read_delete_records_response_delete_records_partition_result_0(b, p):
    partition_index, low_watermark, error_code = unpack_iqh(b, p)
    return DeleteRecordsResponse.DeleteRecordsPartitionResult(
        partition_index, low_watermark, error_code
    ), p + 14


def _read_delete_records_response_delete_records_topic_result_0(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 14, _read_delete_records_response_delete_records_partition_result_0
    )
    return DeleteRecordsResponse.DeleteRecordsTopicResult(name, partitions), p


def _read_delete_records_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(b, p + 4, 6, _read_delete_records_response_delete_records_topic_result_0)
    return DeleteRecordsResponse(throttle_time_ms, topics), p


def _read_delete_records_response_delete_records_partition_result_2(b, p):
    partition_index, low_watermark, error_code = unpack_iqh(b, p)
    return DeleteRecordsResponse.DeleteRecordsPartitionResult(
        partition_index, low_watermark, error_code
    ), skip_tags(b, p + 14)


def _read_delete_records_response_delete_records_topic_result_2(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 15, _read_delete_records_response_delete_records_partition_result_2
    )
    return DeleteRecordsResponse.DeleteRecordsTopicResult(name, partitions), skip_tags(b, p)


def _read_delete_records_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_delete_records_response_delete_records_topic_result_2
    )
    return DeleteRecordsResponse(throttle_time_ms, topics), skip_tags(b, p)


def _write_delete_records_response_delete_records_partition_result_0(w, o):
    w(pack_iqh(o.partition_index, o.low_watermark, o.error_code))


def _write_delete_records_response_delete_records_topic_result_0(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_delete_records_response_delete_records_partition_result_0)


def _write_delete_records_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.topics, _write_delete_records_response_delete_records_topic_result_0)


def _write_delete_records_response_delete_records_partition_result_2(w, o):
    w(pack_iqhx(o.partition_index, o.low_watermark, o.error_code))


def _write_delete_records_response_delete_records_topic_result_2(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_delete_records_response_delete_records_partition_result_2
    )
    w(NO_TAGS)


def _write_delete_records_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_delete_records_response_delete_records_topic_result_2)
    w(NO_TAGS)


DeleteRecordsResponse.readers = since(2, {
    0: _read_delete_records_response_0, 2: _read_delete_records_response_2
})
DeleteRecordsResponse.writers = since(2, {
    0: _write_delete_records_response_0, 2: _write_delete_records_response_2
})


# -- 22: InitProducerId ------------------------------------------------------------------------


class InitProducerIdRequest(ApiMessage):
    """API key 22, the request, versions 0-5."""

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1  # 3+
    producer_epoch: int = -1  # 3+


def _read_init_producer_id_request_0(b, p):
    transactional_id, p = read_nullable_string(b, p)
    (transaction_timeout_ms,) = unpack_i(b, p)
    return InitProducerIdRequest(transactional_id, transaction_timeout_ms), p + 4


def _read_init_producer_id_request_2(b, p):
    transactional_id, p = read_compact_nullable_string(b, p)
    (transaction_timeout_ms,) = unpack_i(b, p)
    return InitProducerIdRequest(transactional_id, transaction_timeout_ms), skip_tags(b, p + 4)


def _read_init_producer_id_request_3(b, p):
    transactional_id, p = read_compact_nullable_string(b, p)
    transaction_timeout_ms, producer_id, producer_epoch = unpack_iqh(b, p)
    return InitProducerIdRequest(
        transactional_id, transaction_timeout_ms, producer_id, producer_epoch
    ), skip_tags(b, p + 14)


def _write_init_producer_id_request_0(w, o):
    w(pack_nullable_string(o.transactional_id) + pack_i(o.transaction_timeout_ms))


def _write_init_producer_id_request_2(w, o):
    w(pack_compact_nullable_string(o.transactional_id) + pack_ix(o.transaction_timeout_ms))


def _write_init_producer_id_request_3(w, o):
    w(
        pack_compact_nullable_string(o.transactional_id) + pack_iqhx(o.transaction_timeout_ms,
        o.producer_id, o.producer_epoch)
    )


InitProducerIdRequest.readers = since(5, {
    0: _read_init_producer_id_request_0, 2: _read_init_producer_id_request_2, 3:
    _read_init_producer_id_request_3
})
InitProducerIdRequest.writers = since(5, {
    0: _write_init_producer_id_request_0, 2: _write_init_producer_id_request_2, 3:
    _write_init_producer_id_request_3
})


class InitProducerIdResponse(ApiMessage):
    """API key 22, the response, versions 0-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0


def _read_init_producer_id_response_0(b, p):
    throttle_time_ms, error_code, producer_id, producer_epoch = unpack_ihqh(b, p)
    return InitProducerIdResponse(throttle_time_ms, error_code, producer_id, producer_epoch), p + 16


def _read_init_producer_id_response_2(b, p):
    throttle_time_ms, error_code, producer_id, producer_epoch = unpack_ihqh(b, p)
    return InitProducerIdResponse(
        throttle_time_ms, error_code, producer_id, producer_epoch
    ), skip_tags(b, p + 16)


def _write_init_producer_id_response_0(w, o):
    w(pack_ihqh(o.throttle_time_ms, o.error_code, o.producer_id, o.producer_epoch))


def _write_init_producer_id_response_2(w, o):
    w(pack_ihqhx(o.throttle_time_ms, o.error_code, o.producer_id, o.producer_epoch))


InitProducerIdResponse.readers = since(5, {
    0: _read_init_producer_id_response_0, 2: _read_init_producer_id_response_2
})
InitProducerIdResponse.writers = since(5, {
    0: _write_init_producer_id_response_0, 2: _write_init_producer_id_response_2
})


# -- 23: OffsetForLeaderEpoch ------------------------------------------------------------------


class OffsetForLeaderEpochRequest(ApiMessage):
    """API key 23, the request, versions 2-4."""

    class OffsetForLeaderPartition(Message):
        partition: int = 0
        current_leader_epoch: int = -1
        leader_epoch: int = 0

    class OffsetForLeaderTopic(Message):
        topic: str = ""
        partitions: Sequence[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ()

    replica_id: int = -2  # 3+
    topics: Sequence[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ()


def _read_offset_for_leader_epoch_request_offset_for_leader_partition_2(b, p):
    partition, current_leader_epoch, leader_epoch = unpack_iii(b, p)
    return OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition, current_leader_epoch, leader_epoch
    ), p + 12


def _read_offset_for_leader_epoch_request_offset_for_leader_topic_2(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 12, _read_offset_for_leader_epoch_request_offset_for_leader_partition_2
    )
    return OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic, partitions), p


def _read_offset_for_leader_epoch_request_2(b, p):
    topics, p = read_array(b, p, 6, _read_offset_for_leader_epoch_request_offset_for_leader_topic_2)
    return OffsetForLeaderEpochRequest(-2, topics), p


def _read_offset_for_leader_epoch_request_3(b, p):
    (replica_id,) = unpack_i(b, p)
    topics, p = read_array(
        b, p + 4, 6, _read_offset_for_leader_epoch_request_offset_for_leader_topic_2
    )
    return OffsetForLeaderEpochRequest(replica_id, topics), p


def _read_offset_for_leader_epoch_request_offset_for_leader_partition_4(b, p):
    partition, current_leader_epoch, leader_epoch = unpack_iii(b, p)
    return OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition, current_leader_epoch, leader_epoch
    ), skip_tags(b, p + 12)


def _read_offset_for_leader_epoch_request_offset_for_leader_topic_4(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 13, _read_offset_for_leader_epoch_request_offset_for_leader_partition_4
    )
    return OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic, partitions), skip_tags(b, p)


def _read_offset_for_leader_epoch_request_4(b, p):
    (replica_id,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_offset_for_leader_epoch_request_offset_for_leader_topic_4
    )
    return OffsetForLeaderEpochRequest(replica_id, topics), skip_tags(b, p)


def _write_offset_for_leader_epoch_request_offset_for_leader_partition_2(w, o):
    w(pack_iii(o.partition, o.current_leader_epoch, o.leader_epoch))


def _write_offset_for_leader_epoch_request_offset_for_leader_topic_2(w, o):
    w(pack_string(o.topic))
    write_array(
        w, o.partitions, _write_offset_for_leader_epoch_request_offset_for_leader_partition_2
    )


def _write_offset_for_leader_epoch_request_2(w, o):
    write_array(w, o.topics, _write_offset_for_leader_epoch_request_offset_for_leader_topic_2)


def _write_offset_for_leader_epoch_request_3(w, o):
    w(pack_i(o.replica_id))
    write_array(w, o.topics, _write_offset_for_leader_epoch_request_offset_for_leader_topic_2)


def _write_offset_for_leader_epoch_request_offset_for_leader_partition_4(w, o):
    w(pack_iiix(o.partition, o.current_leader_epoch, o.leader_epoch))


def _write_offset_for_leader_epoch_request_offset_for_leader_topic_4(w, o):
    w(pack_compact_string(o.topic))
    write_compact_array(
        w, o.partitions, _write_offset_for_leader_epoch_request_offset_for_leader_partition_4
    )
    w(NO_TAGS)


def _write_offset_for_leader_epoch_request_4(w, o):
    w(pack_i(o.replica_id))
    write_compact_array(
        w, o.topics, _write_offset_for_leader_epoch_request_offset_for_leader_topic_4
    )
    w(NO_TAGS)


OffsetForLeaderEpochRequest.readers = since(4, {
    2: _read_offset_for_leader_epoch_request_2, 3: _read_offset_for_leader_epoch_request_3, 4:
    _read_offset_for_leader_epoch_request_4
})
OffsetForLeaderEpochRequest.writers = since(4, {
    2: _write_offset_for_leader_epoch_request_2, 3: _write_offset_for_leader_epoch_request_3, 4:
    _write_offset_for_leader_epoch_request_4
})


class OffsetForLeaderEpochResponse(ApiMessage):
    """API key 23, the response, versions 2-4."""

    class EpochEndOffset(Message):
        error_code: int = 0
        partition: int = 0
        leader_epoch: int = -1
        end_offset: int = -1

    class OffsetForLeaderTopicResult(Message):
        topic: str = ""
        partitions: Sequence[OffsetForLeaderEpochResponse.EpochEndOffset] = ()

    throttle_time_ms: int = 0
    topics: Sequence[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ()


def _read_offset_for_leader_epoch_response_epoch_end_offset_2(b, p):
    error_code, partition, leader_epoch, end_offset = unpack_hiiq(b, p)
    return OffsetForLeaderEpochResponse.EpochEndOffset(
        error_code, partition, leader_epoch, end_offset
    ), p + 18


def _read_offset_for_leader_epoch_response_offset_for_leader_topic_result_2(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_array(b, p, 18, _read_offset_for_leader_epoch_response_epoch_end_offset_2)
    return OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic, partitions), p


def _read_offset_for_leader_epoch_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_array(
        b, p + 4, 6, _read_offset_for_leader_epoch_response_offset_for_leader_topic_result_2
    )
    return OffsetForLeaderEpochResponse(throttle_time_ms, topics), p


def _read_offset_for_leader_epoch_response_epoch_end_offset_4(b, p):
    error_code, partition, leader_epoch, end_offset = unpack_hiiq(b, p)
    return OffsetForLeaderEpochResponse.EpochEndOffset(
        error_code, partition, leader_epoch, end_offset
    ), skip_tags(b, p + 18)


def _read_offset_for_leader_epoch_response_offset_for_leader_topic_result_4(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 19, _read_offset_for_leader_epoch_response_epoch_end_offset_4
    )
    return OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
        topic, partitions
    ), skip_tags(b, p)


def _read_offset_for_leader_epoch_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_offset_for_leader_epoch_response_offset_for_leader_topic_result_4
    )
    return OffsetForLeaderEpochResponse(throttle_time_ms, topics), skip_tags(b, p)


def _write_offset_for_leader_epoch_response_epoch_end_offset_2(w, o):
    w(pack_hiiq(o.error_code, o.partition, o.leader_epoch, o.end_offset))


def _write_offset_for_leader_epoch_response_offset_for_leader_topic_result_2(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partitions, _write_offset_for_leader_epoch_response_epoch_end_offset_2)


def _write_offset_for_leader_epoch_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(
        w, o.topics, _write_offset_for_leader_epoch_response_offset_for_leader_topic_result_2
    )


def _write_offset_for_leader_epoch_response_epoch_end_offset_4(w, o):
    w(pack_hiiqx(o.error_code, o.partition, o.leader_epoch, o.end_offset))


def _write_offset_for_leader_epoch_response_offset_for_leader_topic_result_4(w, o):
    w(pack_compact_string(o.topic))
    write_compact_array(w, o.partitions, _write_offset_for_leader_epoch_response_epoch_end_offset_4)
    w(NO_TAGS)


def _write_offset_for_leader_epoch_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.topics, _write_offset_for_leader_epoch_response_offset_for_leader_topic_result_4
    )
    w(NO_TAGS)


OffsetForLeaderEpochResponse.readers = since(4, {
    2: _read_offset_for_leader_epoch_response_2, 4: _read_offset_for_leader_epoch_response_4
})
OffsetForLeaderEpochResponse.writers = since(4, {
    2: _write_offset_for_leader_epoch_response_2, 4: _write_offset_for_leader_epoch_response_4
})


# -- 29: DescribeAcls --------------------------------------------------------------------------


class DescribeAclsRequest(ApiMessage):
    """API key 29, the request, versions 1-3."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


def _read_describe_acls_request_1(b, p):
    (resource_type_filter,) = unpack_b(b, p)
    resource_name_filter, p = read_nullable_string(b, p + 1)
    (pattern_type_filter,) = unpack_b(b, p)
    principal_filter, p = read_nullable_string(b, p + 1)
    host_filter, p = read_nullable_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DescribeAclsRequest(
        resource_type_filter, resource_name_filter, pattern_type_filter, principal_filter,
        host_filter, operation, permission_type
    ), p + 2


def _read_describe_acls_request_2(b, p):
    (resource_type_filter,) = unpack_b(b, p)
    resource_name_filter, p = read_compact_nullable_string(b, p + 1)
    (pattern_type_filter,) = unpack_b(b, p)
    principal_filter, p = read_compact_nullable_string(b, p + 1)
    host_filter, p = read_compact_nullable_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DescribeAclsRequest(
        resource_type_filter, resource_name_filter, pattern_type_filter, principal_filter,
        host_filter, operation, permission_type
    ), skip_tags(b, p + 2)


def _write_describe_acls_request_1(w, o):
    w(
        pack_b(o.resource_type_filter) + pack_nullable_string(o.resource_name_filter) +
        pack_b(o.pattern_type_filter) + pack_nullable_string(o.principal_filter) +
        pack_nullable_string(o.host_filter) + pack_bb(o.operation, o.permission_type)
    )


def _write_describe_acls_request_2(w, o):
    w(
        pack_b(o.resource_type_filter) + pack_compact_nullable_string(o.resource_name_filter) +
        pack_b(o.pattern_type_filter) + pack_compact_nullable_string(o.principal_filter) +
        pack_compact_nullable_string(o.host_filter) + pack_bbx(o.operation, o.permission_type)
    )


DescribeAclsRequest.readers = since(3, {
    1: _read_describe_acls_request_1, 2: _read_describe_acls_request_2
})
DescribeAclsRequest.writers = since(3, {
    1: _write_describe_acls_request_1, 2: _write_describe_acls_request_2
})


class DescribeAclsResponse(ApiMessage):
    """API key 29, the response, versions 1-3."""

    class AclDescription(Message):
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

    class DescribeAclsResource(Message):
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 3
        acls: Sequence[DescribeAclsResponse.AclDescription] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: Sequence[DescribeAclsResponse.DescribeAclsResource] = ()


def _read_describe_acls_response_acl_description_1(b, p):
    principal, p = read_string(b, p)
    host, p = read_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DescribeAclsResponse.AclDescription(principal, host, operation, permission_type), p + 2


def _read_describe_acls_response_describe_acls_resource_1(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    (pattern_type,) = unpack_b(b, p)
    acls, p = read_array(b, p + 1, 6, _read_describe_acls_response_acl_description_1)
    return DescribeAclsResponse.DescribeAclsResource(
        resource_type, resource_name, pattern_type, acls
    ), p


def _read_describe_acls_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_nullable_string(b, p + 6)
    resources, p = read_array(b, p, 8, _read_describe_acls_response_describe_acls_resource_1)
    return DescribeAclsResponse(throttle_time_ms, error_code, error_message, resources), p


def _read_describe_acls_response_acl_description_2(b, p):
    principal, p = read_compact_string(b, p)
    host, p = read_compact_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DescribeAclsResponse.AclDescription(
        principal, host, operation, permission_type
    ), skip_tags(b, p + 2)


def _read_describe_acls_response_describe_acls_resource_2(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    (pattern_type,) = unpack_b(b, p)
    acls, p = read_compact_array(b, p + 1, 5, _read_describe_acls_response_acl_description_2)
    return DescribeAclsResponse.DescribeAclsResource(
        resource_type, resource_name, pattern_type, acls
    ), skip_tags(b, p)


def _read_describe_acls_response_2(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    resources, p = read_compact_array(
        b, p, 5, _read_describe_acls_response_describe_acls_resource_2
    )
    return DescribeAclsResponse(
        throttle_time_ms, error_code, error_message, resources
    ), skip_tags(b, p)


def _write_describe_acls_response_acl_description_1(w, o):
    w(pack_string(o.principal) + pack_string(o.host) + pack_bb(o.operation, o.permission_type))


def _write_describe_acls_response_describe_acls_resource_1(w, o):
    w(pack_b(o.resource_type) + pack_string(o.resource_name) + pack_b(o.pattern_type))
    write_array(w, o.acls, _write_describe_acls_response_acl_description_1)


def _write_describe_acls_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_nullable_string(o.error_message))
    write_array(w, o.resources, _write_describe_acls_response_describe_acls_resource_1)


def _write_describe_acls_response_acl_description_2(w, o):
    w(
        pack_compact_string(o.principal) + pack_compact_string(o.host) + pack_bbx(o.operation,
        o.permission_type)
    )


def _write_describe_acls_response_describe_acls_resource_2(w, o):
    w(pack_b(o.resource_type) + pack_compact_string(o.resource_name) + pack_b(o.pattern_type))
    write_compact_array(w, o.acls, _write_describe_acls_response_acl_description_2)
    w(NO_TAGS)


def _write_describe_acls_response_2(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(w, o.resources, _write_describe_acls_response_describe_acls_resource_2)
    w(NO_TAGS)


DescribeAclsResponse.readers = since(3, {
    1: _read_describe_acls_response_1, 2: _read_describe_acls_response_2
})
DescribeAclsResponse.writers = since(3, {
    1: _write_describe_acls_response_1, 2: _write_describe_acls_response_2
})


# -- 30: CreateAcls ----------------------------------------------------------------------------


class CreateAclsRequest(ApiMessage):
    """API key 30, the request, versions 1-3."""

    class AclCreation(Message):
        resource_type: int = 0
        resource_name: str = ""
        resource_pattern_type: int = 3
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

    creations: Sequence[CreateAclsRequest.AclCreation] = ()


def _read_create_acls_request_acl_creation_1(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    (resource_pattern_type,) = unpack_b(b, p)
    principal, p = read_string(b, p + 1)
    host, p = read_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return CreateAclsRequest.AclCreation(
        resource_type, resource_name, resource_pattern_type, principal, host, operation,
        permission_type
    ), p + 2


def _read_create_acls_request_1(b, p):
    creations, p = read_array(b, p, 10, _read_create_acls_request_acl_creation_1)
    return CreateAclsRequest(creations), p


def _read_create_acls_request_acl_creation_2(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    (resource_pattern_type,) = unpack_b(b, p)
    principal, p = read_compact_string(b, p + 1)
    host, p = read_compact_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return CreateAclsRequest.AclCreation(
        resource_type, resource_name, resource_pattern_type, principal, host, operation,
        permission_type
    ), skip_tags(b, p + 2)


def _read_create_acls_request_2(b, p):
    creations, p = read_compact_array(b, p, 8, _read_create_acls_request_acl_creation_2)
    return CreateAclsRequest(creations), skip_tags(b, p)


def _write_create_acls_request_acl_creation_1(w, o):
    w(
        pack_b(o.resource_type) + pack_string(o.resource_name) + pack_b(o.resource_pattern_type) +
        pack_string(o.principal) + pack_string(o.host) + pack_bb(o.operation, o.permission_type)
    )


def _write_create_acls_request_1(w, o):
    write_array(w, o.creations, _write_create_acls_request_acl_creation_1)


def _write_create_acls_request_acl_creation_2(w, o):
    w(
        pack_b(o.resource_type) + pack_compact_string(o.resource_name) +
        pack_b(o.resource_pattern_type) + pack_compact_string(o.principal) +
        pack_compact_string(o.host) + pack_bbx(o.operation, o.permission_type)
    )


def _write_create_acls_request_2(w, o):
    write_compact_array(w, o.creations, _write_create_acls_request_acl_creation_2)
    w(NO_TAGS)


CreateAclsRequest.readers = since(3, {
    1: _read_create_acls_request_1, 2: _read_create_acls_request_2
})
CreateAclsRequest.writers = since(3, {
    1: _write_create_acls_request_1, 2: _write_create_acls_request_2
})


class CreateAclsResponse(ApiMessage):
    """API key 30, the response, versions 1-3."""

    class AclCreationResult(Message):
        error_code: int = 0
        error_message: str | None = ""

    throttle_time_ms: int = 0
    results: Sequence[CreateAclsResponse.AclCreationResult] = ()


def _read_create_acls_response_acl_creation_result_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    return CreateAclsResponse.AclCreationResult(error_code, error_message), p


def _read_create_acls_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_array(b, p + 4, 4, _read_create_acls_response_acl_creation_result_1)
    return CreateAclsResponse(throttle_time_ms, results), p


def _read_create_acls_response_acl_creation_result_2(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    return CreateAclsResponse.AclCreationResult(error_code, error_message), skip_tags(b, p)


def _read_create_acls_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_compact_array(b, p + 4, 4, _read_create_acls_response_acl_creation_result_2)
    return CreateAclsResponse(throttle_time_ms, results), skip_tags(b, p)


def _write_create_acls_response_acl_creation_result_1(w, o):
    w(pack_h(o.error_code) + pack_nullable_string(o.error_message))


def _write_create_acls_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.results, _write_create_acls_response_acl_creation_result_1)


def _write_create_acls_response_acl_creation_result_2(w, o):
    w(pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) + NO_TAGS)


def _write_create_acls_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.results, _write_create_acls_response_acl_creation_result_2)
    w(NO_TAGS)


CreateAclsResponse.readers = since(3, {
    1: _read_create_acls_response_1, 2: _read_create_acls_response_2
})
CreateAclsResponse.writers = since(3, {
    1: _write_create_acls_response_1, 2: _write_create_acls_response_2
})


# -- 31: DeleteAcls ----------------------------------------------------------------------------


class DeleteAclsRequest(ApiMessage):
    """API key 31, the request, versions 1-3."""

    class DeleteAclsFilter(Message):
        resource_type_filter: int = 0
        resource_name_filter: str | None = ""
        pattern_type_filter: int = 3
        principal_filter: str | None = ""
        host_filter: str | None = ""
        operation: int = 0
        permission_type: int = 0

    filters: Sequence[DeleteAclsRequest.DeleteAclsFilter] = ()


def _read_delete_acls_request_delete_acls_filter_1(b, p):
    (resource_type_filter,) = unpack_b(b, p)
    resource_name_filter, p = read_nullable_string(b, p + 1)
    (pattern_type_filter,) = unpack_b(b, p)
    principal_filter, p = read_nullable_string(b, p + 1)
    host_filter, p = read_nullable_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter, resource_name_filter, pattern_type_filter, principal_filter,
        host_filter, operation, permission_type
    ), p + 2


def _read_delete_acls_request_1(b, p):
    filters, p = read_array(b, p, 10, _read_delete_acls_request_delete_acls_filter_1)
    return DeleteAclsRequest(filters), p


def _read_delete_acls_request_delete_acls_filter_2(b, p):
    (resource_type_filter,) = unpack_b(b, p)
    resource_name_filter, p = read_compact_nullable_string(b, p + 1)
    (pattern_type_filter,) = unpack_b(b, p)
    principal_filter, p = read_compact_nullable_string(b, p + 1)
    host_filter, p = read_compact_nullable_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter, resource_name_filter, pattern_type_filter, principal_filter,
        host_filter, operation, permission_type
    ), skip_tags(b, p + 2)


def _read_delete_acls_request_2(b, p):
    filters, p = read_compact_array(b, p, 8, _read_delete_acls_request_delete_acls_filter_2)
    return DeleteAclsRequest(filters), skip_tags(b, p)


def _write_delete_acls_request_delete_acls_filter_1(w, o):
    w(
        pack_b(o.resource_type_filter) + pack_nullable_string(o.resource_name_filter) +
        pack_b(o.pattern_type_filter) + pack_nullable_string(o.principal_filter) +
        pack_nullable_string(o.host_filter) + pack_bb(o.operation, o.permission_type)
    )


def _write_delete_acls_request_1(w, o):
    write_array(w, o.filters, _write_delete_acls_request_delete_acls_filter_1)


def _write_delete_acls_request_delete_acls_filter_2(w, o):
    w(
        pack_b(o.resource_type_filter) + pack_compact_nullable_string(o.resource_name_filter) +
        pack_b(o.pattern_type_filter) + pack_compact_nullable_string(o.principal_filter) +
        pack_compact_nullable_string(o.host_filter) + pack_bbx(o.operation, o.permission_type)
    )


def _write_delete_acls_request_2(w, o):
    write_compact_array(w, o.filters, _write_delete_acls_request_delete_acls_filter_2)
    w(NO_TAGS)


DeleteAclsRequest.readers = since(3, {
    1: _read_delete_acls_request_1, 2: _read_delete_acls_request_2
})
DeleteAclsRequest.writers = since(3, {
    1: _write_delete_acls_request_1, 2: _write_delete_acls_request_2
})


class DeleteAclsResponse(ApiMessage):
    """API key 31, the response, versions 1-3."""

    class DeleteAclsMatchingAcl(Message):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 3
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

    class DeleteAclsFilterResult(Message):
        error_code: int = 0
        error_message: str | None = ""
        matching_acls: Sequence[DeleteAclsResponse.DeleteAclsMatchingAcl] = ()

    throttle_time_ms: int = 0
    filter_results: Sequence[DeleteAclsResponse.DeleteAclsFilterResult] = ()


def _read_delete_acls_response_delete_acls_matching_acl_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    (pattern_type,) = unpack_b(b, p)
    principal, p = read_string(b, p + 1)
    host, p = read_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_code, error_message, resource_type, resource_name, pattern_type, principal, host,
        operation, permission_type
    ), p + 2


def _read_delete_acls_response_delete_acls_filter_result_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    matching_acls, p = read_array(b, p, 14, _read_delete_acls_response_delete_acls_matching_acl_1)
    return DeleteAclsResponse.DeleteAclsFilterResult(error_code, error_message, matching_acls), p


def _read_delete_acls_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    filter_results, p = read_array(
        b, p + 4, 8, _read_delete_acls_response_delete_acls_filter_result_1
    )
    return DeleteAclsResponse(throttle_time_ms, filter_results), p


def _read_delete_acls_response_delete_acls_matching_acl_2(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    (pattern_type,) = unpack_b(b, p)
    principal, p = read_compact_string(b, p + 1)
    host, p = read_compact_string(b, p)
    operation, permission_type = unpack_bb(b, p)
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_code, error_message, resource_type, resource_name, pattern_type, principal, host,
        operation, permission_type
    ), skip_tags(b, p + 2)


def _read_delete_acls_response_delete_acls_filter_result_2(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    matching_acls, p = read_compact_array(
        b, p, 11, _read_delete_acls_response_delete_acls_matching_acl_2
    )
    return DeleteAclsResponse.DeleteAclsFilterResult(
        error_code, error_message, matching_acls
    ), skip_tags(b, p)


def _read_delete_acls_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    filter_results, p = read_compact_array(
        b, p + 4, 5, _read_delete_acls_response_delete_acls_filter_result_2
    )
    return DeleteAclsResponse(throttle_time_ms, filter_results), skip_tags(b, p)


def _write_delete_acls_response_delete_acls_matching_acl_1(w, o):
    w(
        pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_b(o.resource_type) +
        pack_string(o.resource_name) + pack_b(o.pattern_type) + pack_string(o.principal) +
        pack_string(o.host) + pack_bb(o.operation, o.permission_type)
    )


def _write_delete_acls_response_delete_acls_filter_result_1(w, o):
    w(pack_h(o.error_code) + pack_nullable_string(o.error_message))
    write_array(w, o.matching_acls, _write_delete_acls_response_delete_acls_matching_acl_1)


def _write_delete_acls_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.filter_results, _write_delete_acls_response_delete_acls_filter_result_1)


def _write_delete_acls_response_delete_acls_matching_acl_2(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_b(o.resource_type) + pack_compact_string(o.resource_name) + pack_b(o.pattern_type) +
        pack_compact_string(o.principal) + pack_compact_string(o.host) + pack_bbx(o.operation,
        o.permission_type)
    )


def _write_delete_acls_response_delete_acls_filter_result_2(w, o):
    w(pack_h(o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(w, o.matching_acls, _write_delete_acls_response_delete_acls_matching_acl_2)
    w(NO_TAGS)


def _write_delete_acls_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.filter_results, _write_delete_acls_response_delete_acls_filter_result_2
    )
    w(NO_TAGS)


DeleteAclsResponse.readers = since(3, {
    1: _read_delete_acls_response_1, 2: _read_delete_acls_response_2
})
DeleteAclsResponse.writers = since(3, {
    1: _write_delete_acls_response_1, 2: _write_delete_acls_response_2
})


# -- 32: DescribeConfigs -----------------------------------------------------------------------


class DescribeConfigsRequest(ApiMessage):
    """API key 32, the request, versions 1-4."""

    class DescribeConfigsResource(Message):
        resource_type: int = 0
        resource_name: str = ""
        configuration_keys: Sequence[str] | None = ()

    resources: Sequence[DescribeConfigsRequest.DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False  # 3+


def _read_describe_configs_request_describe_configs_resource_1(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    configuration_keys, p = read_nullable_array(b, p, 2, read_string)
    return DescribeConfigsRequest.DescribeConfigsResource(
        resource_type, resource_name, configuration_keys
    ), p


def _read_describe_configs_request_1(b, p):
    resources, p = read_array(b, p, 7, _read_describe_configs_request_describe_configs_resource_1)
    (include_synonyms,) = unpack_t(b, p)
    return DescribeConfigsRequest(resources, include_synonyms), p + 1


def _read_describe_configs_request_3(b, p):
    resources, p = read_array(b, p, 7, _read_describe_configs_request_describe_configs_resource_1)
    include_synonyms, include_documentation = unpack_tt(b, p)
    return DescribeConfigsRequest(resources, include_synonyms, include_documentation), p + 2


def _read_describe_configs_request_describe_configs_resource_4(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    configuration_keys, p = read_compact_nullable_array(b, p, 1, read_compact_string)
    return DescribeConfigsRequest.DescribeConfigsResource(
        resource_type, resource_name, configuration_keys
    ), skip_tags(b, p)


def _read_describe_configs_request_4(b, p):
    resources, p = read_compact_array(
        b, p, 4, _read_describe_configs_request_describe_configs_resource_4
    )
    include_synonyms, include_documentation = unpack_tt(b, p)
    return DescribeConfigsRequest(
        resources, include_synonyms, include_documentation
    ), skip_tags(b, p + 2)


def _write_describe_configs_request_describe_configs_resource_1(w, o):
    w(
        pack_b(o.resource_type) + pack_string(o.resource_name) +
        pack_nullable_array(o.configuration_keys, pack_string)
    )


def _write_describe_configs_request_1(w, o):
    write_array(w, o.resources, _write_describe_configs_request_describe_configs_resource_1)
    w(pack_t(o.include_synonyms))


def _write_describe_configs_request_3(w, o):
    write_array(w, o.resources, _write_describe_configs_request_describe_configs_resource_1)
    w(pack_tt(o.include_synonyms, o.include_documentation))


def _write_describe_configs_request_describe_configs_resource_4(w, o):
    w(
        pack_b(o.resource_type) + pack_compact_string(o.resource_name) +
        pack_compact_nullable_array(o.configuration_keys, pack_compact_string) + NO_TAGS
    )


def _write_describe_configs_request_4(w, o):
    write_compact_array(w, o.resources, _write_describe_configs_request_describe_configs_resource_4)
    w(pack_ttx(o.include_synonyms, o.include_documentation))


DescribeConfigsRequest.readers = since(4, {
    1: _read_describe_configs_request_1, 3: _read_describe_configs_request_3, 4:
    _read_describe_configs_request_4
})
DescribeConfigsRequest.writers = since(4, {
    1: _write_describe_configs_request_1, 3: _write_describe_configs_request_3, 4:
    _write_describe_configs_request_4
})


class DescribeConfigsResponse(ApiMessage):
    """API key 32, the response, versions 1-4."""

    class DescribeConfigsSynonym(Message):
        name: str = ""
        value: str | None = ""
        source: int = 0

    class DescribeConfigsResourceResult(Message):
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        config_source: int = -1
        is_sensitive: bool = False
        synonyms: Sequence[DescribeConfigsResponse.DescribeConfigsSynonym] = ()
        config_type: int = 0  # 3+
        documentation: str | None = ""  # 3+

    class DescribeConfigsResult(Message):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""
        configs: Sequence[DescribeConfigsResponse.DescribeConfigsResourceResult] = ()

    throttle_time_ms: int = 0
    results: Sequence[DescribeConfigsResponse.DescribeConfigsResult] = ()


def _read_describe_configs_response_describe_configs_synonym_1(b, p):
    name, p = read_string(b, p)
    value, p = read_nullable_string(b, p)
    (source,) = unpack_b(b, p)
    return DescribeConfigsResponse.DescribeConfigsSynonym(name, value, source), p + 1


def _read_describe_configs_response_describe_configs_resource_result_1(b, p):
    name, p = read_string(b, p)
    value, p = read_nullable_string(b, p)
    read_only, config_source, is_sensitive = unpack_tbt(b, p)
    synonyms, p = read_array(
        b, p + 3, 5, _read_describe_configs_response_describe_configs_synonym_1
    )
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name, value, read_only, config_source, is_sensitive, synonyms
    ), p


def _read_describe_configs_response_describe_configs_result_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    configs, p = read_array(
        b, p, 11, _read_describe_configs_response_describe_configs_resource_result_1
    )
    return DescribeConfigsResponse.DescribeConfigsResult(
        error_code, error_message, resource_type, resource_name, configs
    ), p


def _read_describe_configs_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_array(b, p + 4, 11, _read_describe_configs_response_describe_configs_result_1)
    return DescribeConfigsResponse(throttle_time_ms, results), p


def _read_describe_configs_response_describe_configs_resource_result_3(b, p):
    name, p = read_string(b, p)
    value, p = read_nullable_string(b, p)
    read_only, config_source, is_sensitive = unpack_tbt(b, p)
    synonyms, p = read_array(
        b, p + 3, 5, _read_describe_configs_response_describe_configs_synonym_1
    )
    (config_type,) = unpack_b(b, p)
    documentation, p = read_nullable_string(b, p + 1)
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name, value, read_only, config_source, is_sensitive, synonyms, config_type, documentation
    ), p


def _read_describe_configs_response_describe_configs_result_3(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    configs, p = read_array(
        b, p, 14, _read_describe_configs_response_describe_configs_resource_result_3
    )
    return DescribeConfigsResponse.DescribeConfigsResult(
        error_code, error_message, resource_type, resource_name, configs
    ), p


def _read_describe_configs_response_3(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_array(b, p + 4, 11, _read_describe_configs_response_describe_configs_result_3)
    return DescribeConfigsResponse(throttle_time_ms, results), p


def _read_describe_configs_response_describe_configs_synonym_4(b, p):
    name, p = read_compact_string(b, p)
    value, p = read_compact_nullable_string(b, p)
    (source,) = unpack_b(b, p)
    return DescribeConfigsResponse.DescribeConfigsSynonym(name, value, source), skip_tags(b, p + 1)


def _read_describe_configs_response_describe_configs_resource_result_4(b, p):
    name, p = read_compact_string(b, p)
    value, p = read_compact_nullable_string(b, p)
    read_only, config_source, is_sensitive = unpack_tbt(b, p)
    synonyms, p = read_compact_array(
        b, p + 3, 4, _read_describe_configs_response_describe_configs_synonym_4
    )
    (config_type,) = unpack_b(b, p)
    documentation, p = read_compact_nullable_string(b, p + 1)
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name, value, read_only, config_source, is_sensitive, synonyms, config_type, documentation
    ), skip_tags(b, p)


def _read_describe_configs_response_describe_configs_result_4(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    configs, p = read_compact_array(
        b, p, 9, _read_describe_configs_response_describe_configs_resource_result_4
    )
    return DescribeConfigsResponse.DescribeConfigsResult(
        error_code, error_message, resource_type, resource_name, configs
    ), skip_tags(b, p)


def _read_describe_configs_response_4(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_compact_array(
        b, p + 4, 7, _read_describe_configs_response_describe_configs_result_4
    )
    return DescribeConfigsResponse(throttle_time_ms, results), skip_tags(b, p)


def _write_describe_configs_response_describe_configs_synonym_1(w, o):
    w(pack_string(o.name) + pack_nullable_string(o.value) + pack_b(o.source))


def _write_describe_configs_response_describe_configs_resource_result_1(w, o):
    w(
        pack_string(o.name) + pack_nullable_string(o.value) + pack_tbt(o.read_only, o.config_source,
        o.is_sensitive)
    )
    write_array(w, o.synonyms, _write_describe_configs_response_describe_configs_synonym_1)


def _write_describe_configs_response_describe_configs_result_1(w, o):
    w(
        pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_b(o.resource_type) +
        pack_string(o.resource_name)
    )
    write_array(w, o.configs, _write_describe_configs_response_describe_configs_resource_result_1)


def _write_describe_configs_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.results, _write_describe_configs_response_describe_configs_result_1)


def _write_describe_configs_response_describe_configs_resource_result_3(w, o):
    w(
        pack_string(o.name) + pack_nullable_string(o.value) + pack_tbt(o.read_only, o.config_source,
        o.is_sensitive)
    )
    write_array(w, o.synonyms, _write_describe_configs_response_describe_configs_synonym_1)
    w(pack_b(o.config_type) + pack_nullable_string(o.documentation))


def _write_describe_configs_response_describe_configs_result_3(w, o):
    w(
        pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_b(o.resource_type) +
        pack_string(o.resource_name)
    )
    write_array(w, o.configs, _write_describe_configs_response_describe_configs_resource_result_3)


def _write_describe_configs_response_3(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.results, _write_describe_configs_response_describe_configs_result_3)


def _write_describe_configs_response_describe_configs_synonym_4(w, o):
    w(pack_compact_string(o.name) + pack_compact_nullable_string(o.value) + pack_bx(o.source))


def _write_describe_configs_response_describe_configs_resource_result_4(w, o):
    w(
        pack_compact_string(o.name) + pack_compact_nullable_string(o.value) + pack_tbt(o.read_only,
        o.config_source, o.is_sensitive)
    )
    write_compact_array(w, o.synonyms, _write_describe_configs_response_describe_configs_synonym_4)
    w(pack_b(o.config_type) + pack_compact_nullable_string(o.documentation) + NO_TAGS)


def _write_describe_configs_response_describe_configs_result_4(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_b(o.resource_type) + pack_compact_string(o.resource_name)
    )
    write_compact_array(
        w, o.configs, _write_describe_configs_response_describe_configs_resource_result_4
    )
    w(NO_TAGS)


def _write_describe_configs_response_4(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.results, _write_describe_configs_response_describe_configs_result_4)
    w(NO_TAGS)


DescribeConfigsResponse.readers = since(4, {
    1: _read_describe_configs_response_1, 3: _read_describe_configs_response_3, 4:
    _read_describe_configs_response_4
})
DescribeConfigsResponse.writers = since(4, {
    1: _write_describe_configs_response_1, 3: _write_describe_configs_response_3, 4:
    _write_describe_configs_response_4
})


# -- 33: AlterConfigs --------------------------------------------------------------------------


class AlterConfigsRequest(ApiMessage):
    """API key 33, the request, versions 0-2."""

    class AlterableConfig(Message):
        name: str = ""
        value: str | None = ""

    class AlterConfigsResource(Message):
        resource_type: int = 0
        resource_name: str = ""
        configs: Sequence[AlterConfigsRequest.AlterableConfig] = ()

    resources: Sequence[AlterConfigsRequest.AlterConfigsResource] = ()
    validate_only: bool = False


def _read_alter_configs_request_alterable_config_0(b, p):
    name, p = read_string(b, p)
    value, p = read_nullable_string(b, p)
    return AlterConfigsRequest.AlterableConfig(name, value), p


def _read_alter_configs_request_alter_configs_resource_0(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    configs, p = read_array(b, p, 4, _read_alter_configs_request_alterable_config_0)
    return AlterConfigsRequest.AlterConfigsResource(resource_type, resource_name, configs), p


def _read_alter_configs_request_0(b, p):
    resources, p = read_array(b, p, 7, _read_alter_configs_request_alter_configs_resource_0)
    (validate_only,) = unpack_t(b, p)
    return AlterConfigsRequest(resources, validate_only), p + 1


def _read_alter_configs_request_alterable_config_2(b, p):
    name, p = read_compact_string(b, p)
    value, p = read_compact_nullable_string(b, p)
    return AlterConfigsRequest.AlterableConfig(name, value), skip_tags(b, p)


def _read_alter_configs_request_alter_configs_resource_2(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    configs, p = read_compact_array(b, p, 3, _read_alter_configs_request_alterable_config_2)
    return AlterConfigsRequest.AlterConfigsResource(
        resource_type, resource_name, configs
    ), skip_tags(b, p)


def _read_alter_configs_request_2(b, p):
    resources, p = read_compact_array(b, p, 4, _read_alter_configs_request_alter_configs_resource_2)
    (validate_only,) = unpack_t(b, p)
    return AlterConfigsRequest(resources, validate_only), skip_tags(b, p + 1)


def _write_alter_configs_request_alterable_config_0(w, o):
    w(pack_string(o.name) + pack_nullable_string(o.value))


def _write_alter_configs_request_alter_configs_resource_0(w, o):
    w(pack_b(o.resource_type) + pack_string(o.resource_name))
    write_array(w, o.configs, _write_alter_configs_request_alterable_config_0)


def _write_alter_configs_request_0(w, o):
    write_array(w, o.resources, _write_alter_configs_request_alter_configs_resource_0)
    w(pack_t(o.validate_only))


def _write_alter_configs_request_alterable_config_2(w, o):
    w(pack_compact_string(o.name) + pack_compact_nullable_string(o.value) + NO_TAGS)


def _write_alter_configs_request_alter_configs_resource_2(w, o):
    w(pack_b(o.resource_type) + pack_compact_string(o.resource_name))
    write_compact_array(w, o.configs, _write_alter_configs_request_alterable_config_2)
    w(NO_TAGS)


def _write_alter_configs_request_2(w, o):
    write_compact_array(w, o.resources, _write_alter_configs_request_alter_configs_resource_2)
    w(pack_tx(o.validate_only))


AlterConfigsRequest.readers = since(2, {
    0: _read_alter_configs_request_0, 2: _read_alter_configs_request_2
})
AlterConfigsRequest.writers = since(2, {
    0: _write_alter_configs_request_0, 2: _write_alter_configs_request_2
})


class AlterConfigsResponse(ApiMessage):
    """API key 33, the response, versions 0-2."""

    class AlterConfigsResourceResponse(Message):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""

    throttle_time_ms: int = 0
    responses: Sequence[AlterConfigsResponse.AlterConfigsResourceResponse] = ()


def _read_alter_configs_response_alter_configs_resource_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    return AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code, error_message, resource_type, resource_name
    ), p


def _read_alter_configs_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_array(
        b, p + 4, 7, _read_alter_configs_response_alter_configs_resource_response_0
    )
    return AlterConfigsResponse(throttle_time_ms, responses), p


def _read_alter_configs_response_alter_configs_resource_response_2(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    return AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code, error_message, resource_type, resource_name
    ), skip_tags(b, p)


def _read_alter_configs_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_compact_array(
        b, p + 4, 6, _read_alter_configs_response_alter_configs_resource_response_2
    )
    return AlterConfigsResponse(throttle_time_ms, responses), skip_tags(b, p)


def _write_alter_configs_response_alter_configs_resource_response_0(w, o):
    w(
        pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_b(o.resource_type) +
        pack_string(o.resource_name)
    )


def _write_alter_configs_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.responses, _write_alter_configs_response_alter_configs_resource_response_0)


def _write_alter_configs_response_alter_configs_resource_response_2(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_b(o.resource_type) + pack_compact_string(o.resource_name) + NO_TAGS
    )


def _write_alter_configs_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.responses, _write_alter_configs_response_alter_configs_resource_response_2
    )
    w(NO_TAGS)


AlterConfigsResponse.readers = since(2, {
    0: _read_alter_configs_response_0, 2: _read_alter_configs_response_2
})
AlterConfigsResponse.writers = since(2, {
    0: _write_alter_configs_response_0, 2: _write_alter_configs_response_2
})


# -- 35: DescribeLogDirs -----------------------------------------------------------------------


class DescribeLogDirsRequest(ApiMessage):
    """API key 35, the request, versions 1-4."""

    class DescribableLogDirTopic(Message):
        topic: str = ""
        partitions: Sequence[int] = ()

    topics: Sequence[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ()


def _read_describe_log_dirs_request_describable_log_dir_topic_1(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_numbers(b, p, "i")
    return DescribeLogDirsRequest.DescribableLogDirTopic(topic, partitions), p


def _read_describe_log_dirs_request_1(b, p):
    topics, p = read_nullable_array(
        b, p, 6, _read_describe_log_dirs_request_describable_log_dir_topic_1
    )
    return DescribeLogDirsRequest(topics), p


def _read_describe_log_dirs_request_describable_log_dir_topic_2(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_numbers(b, p, "i")
    return DescribeLogDirsRequest.DescribableLogDirTopic(topic, partitions), skip_tags(b, p)


def _read_describe_log_dirs_request_2(b, p):
    topics, p = read_compact_nullable_array(
        b, p, 3, _read_describe_log_dirs_request_describable_log_dir_topic_2
    )
    return DescribeLogDirsRequest(topics), skip_tags(b, p)


def _write_describe_log_dirs_request_describable_log_dir_topic_1(w, o):
    w(pack_string(o.topic) + pack_numbers(o.partitions, "i"))


def _write_describe_log_dirs_request_1(w, o):
    write_nullable_array(w, o.topics, _write_describe_log_dirs_request_describable_log_dir_topic_1)


def _write_describe_log_dirs_request_describable_log_dir_topic_2(w, o):
    w(pack_compact_string(o.topic) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_describe_log_dirs_request_2(w, o):
    write_compact_nullable_array(
        w, o.topics, _write_describe_log_dirs_request_describable_log_dir_topic_2
    )
    w(NO_TAGS)


DescribeLogDirsRequest.readers = since(4, {
    1: _read_describe_log_dirs_request_1, 2: _read_describe_log_dirs_request_2
})
DescribeLogDirsRequest.writers = since(4, {
    1: _write_describe_log_dirs_request_1, 2: _write_describe_log_dirs_request_2
})


class DescribeLogDirsResponse(ApiMessage):
    """API key 35, the response, versions 1-4."""

    class DescribeLogDirsPartition(Message):
        partition_index: int = 0
        partition_size: int = 0
        offset_lag: int = 0
        is_future_key: bool = False

    class DescribeLogDirsTopic(Message):
        name: str = ""
        partitions: Sequence[DescribeLogDirsResponse.DescribeLogDirsPartition] = ()

    class DescribeLogDirsResult(Message):
        error_code: int = 0
        log_dir: str = ""
        topics: Sequence[DescribeLogDirsResponse.DescribeLogDirsTopic] = ()
        total_bytes: int = -1  # 4+
        usable_bytes: int = -1  # 4+

    throttle_time_ms: int = 0
    error_code: int = 0  # 3+
    results: Sequence[DescribeLogDirsResponse.DescribeLogDirsResult] = ()


def _read_describe_log_dirs_response_describe_log_dirs_partition_1(b, p):
    partition_index, partition_size, offset_lag, is_future_key = unpack_iqqt(b, p)
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index, partition_size, offset_lag, is_future_key
    ), p + 21


def _read_describe_log_dirs_response_describe_log_dirs_topic_1(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 21, _read_describe_log_dirs_response_describe_log_dirs_partition_1
    )
    return DescribeLogDirsResponse.DescribeLogDirsTopic(name, partitions), p


def _read_describe_log_dirs_response_describe_log_dirs_result_1(b, p):
    (error_code,) = unpack_h(b, p)
    log_dir, p = read_string(b, p + 2)
    topics, p = read_array(b, p, 6, _read_describe_log_dirs_response_describe_log_dirs_topic_1)
    return DescribeLogDirsResponse.DescribeLogDirsResult(error_code, log_dir, topics), p


def _read_describe_log_dirs_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_array(
        b, p + 4, 8, _read_describe_log_dirs_response_describe_log_dirs_result_1
    )
    return DescribeLogDirsResponse(throttle_time_ms, 0, results), p


def _read_describe_log_dirs_response_describe_log_dirs_partition_2(b, p):
    partition_index, partition_size, offset_lag, is_future_key = unpack_iqqt(b, p)
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index, partition_size, offset_lag, is_future_key
    ), skip_tags(b, p + 21)


def _read_describe_log_dirs_response_describe_log_dirs_topic_2(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 22, _read_describe_log_dirs_response_describe_log_dirs_partition_2
    )
    return DescribeLogDirsResponse.DescribeLogDirsTopic(name, partitions), skip_tags(b, p)


def _read_describe_log_dirs_response_describe_log_dirs_result_2(b, p):
    (error_code,) = unpack_h(b, p)
    log_dir, p = read_compact_string(b, p + 2)
    topics, p = read_compact_array(
        b, p, 3, _read_describe_log_dirs_response_describe_log_dirs_topic_2
    )
    return DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code, log_dir, topics
    ), skip_tags(b, p)


def _read_describe_log_dirs_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_compact_array(
        b, p + 4, 5, _read_describe_log_dirs_response_describe_log_dirs_result_2
    )
    return DescribeLogDirsResponse(throttle_time_ms, 0, results), skip_tags(b, p)


def _read_describe_log_dirs_response_3(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    results, p = read_compact_array(
        b, p + 6, 5, _read_describe_log_dirs_response_describe_log_dirs_result_2
    )
    return DescribeLogDirsResponse(throttle_time_ms, error_code, results), skip_tags(b, p)


def _read_describe_log_dirs_response_describe_log_dirs_result_4(b, p):
    (error_code,) = unpack_h(b, p)
    log_dir, p = read_compact_string(b, p + 2)
    topics, p = read_compact_array(
        b, p, 3, _read_describe_log_dirs_response_describe_log_dirs_topic_2
    )
    total_bytes, usable_bytes = unpack_qq(b, p)
    return DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code, log_dir, topics, total_bytes, usable_bytes
    ), skip_tags(b, p + 16)


def _read_describe_log_dirs_response_4(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    results, p = read_compact_array(
        b, p + 6, 21, _read_describe_log_dirs_response_describe_log_dirs_result_4
    )
    return DescribeLogDirsResponse(throttle_time_ms, error_code, results), skip_tags(b, p)


def _write_describe_log_dirs_response_describe_log_dirs_partition_1(w, o):
    w(pack_iqqt(o.partition_index, o.partition_size, o.offset_lag, o.is_future_key))


def _write_describe_log_dirs_response_describe_log_dirs_topic_1(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_describe_log_dirs_response_describe_log_dirs_partition_1)


def _write_describe_log_dirs_response_describe_log_dirs_result_1(w, o):
    w(pack_h(o.error_code) + pack_string(o.log_dir))
    write_array(w, o.topics, _write_describe_log_dirs_response_describe_log_dirs_topic_1)


def _write_describe_log_dirs_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.results, _write_describe_log_dirs_response_describe_log_dirs_result_1)


def _write_describe_log_dirs_response_describe_log_dirs_partition_2(w, o):
    w(pack_iqqtx(o.partition_index, o.partition_size, o.offset_lag, o.is_future_key))


def _write_describe_log_dirs_response_describe_log_dirs_topic_2(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_describe_log_dirs_response_describe_log_dirs_partition_2
    )
    w(NO_TAGS)


def _write_describe_log_dirs_response_describe_log_dirs_result_2(w, o):
    w(pack_h(o.error_code) + pack_compact_string(o.log_dir))
    write_compact_array(w, o.topics, _write_describe_log_dirs_response_describe_log_dirs_topic_2)
    w(NO_TAGS)


def _write_describe_log_dirs_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.results, _write_describe_log_dirs_response_describe_log_dirs_result_2)
    w(NO_TAGS)


def _write_describe_log_dirs_response_3(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(w, o.results, _write_describe_log_dirs_response_describe_log_dirs_result_2)
    w(NO_TAGS)


def _write_describe_log_dirs_response_describe_log_dirs_result_4(w, o):
    w(pack_h(o.error_code) + pack_compact_string(o.log_dir))
    write_compact_array(w, o.topics, _write_describe_log_dirs_response_describe_log_dirs_topic_2)
    w(pack_qqx(o.total_bytes, o.usable_bytes))


def _write_describe_log_dirs_response_4(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(w, o.results, _write_describe_log_dirs_response_describe_log_dirs_result_4)
    w(NO_TAGS)


DescribeLogDirsResponse.readers = since(4, {
    1: _read_describe_log_dirs_response_1, 2: _read_describe_log_dirs_response_2, 3:
    _read_describe_log_dirs_response_3, 4: _read_describe_log_dirs_response_4
})
DescribeLogDirsResponse.writers = since(4, {
    1: _write_describe_log_dirs_response_1, 2: _write_describe_log_dirs_response_2, 3:
    _write_describe_log_dirs_response_3, 4: _write_describe_log_dirs_response_4
})


# -- 36: SaslAuthenticate ----------------------------------------------------------------------


class SaslAuthenticateRequest(ApiMessage):
    """API key 36, the request, versions 0-2."""

    auth_bytes: bytes = b""


def _read_sasl_authenticate_request_0(b, p):
    auth_bytes, p = read_bytes(b, p)
    return SaslAuthenticateRequest(auth_bytes), p


def _read_sasl_authenticate_request_2(b, p):
    auth_bytes, p = read_compact_bytes(b, p)
    return SaslAuthenticateRequest(auth_bytes), skip_tags(b, p)


def _write_sasl_authenticate_request_0(w, o):
    w(pack_bytes(o.auth_bytes))


def _write_sasl_authenticate_request_2(w, o):
    w(pack_compact_bytes(o.auth_bytes) + NO_TAGS)


SaslAuthenticateRequest.readers = since(2, {
    0: _read_sasl_authenticate_request_0, 2: _read_sasl_authenticate_request_2
})
SaslAuthenticateRequest.writers = since(2, {
    0: _write_sasl_authenticate_request_0, 2: _write_sasl_authenticate_request_2
})


class SaslAuthenticateResponse(ApiMessage):
    """API key 36, the response, versions 0-2."""

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0  # 1+


def _read_sasl_authenticate_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    auth_bytes, p = read_bytes(b, p)
    return SaslAuthenticateResponse(error_code, error_message, auth_bytes), p


def _read_sasl_authenticate_response_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    auth_bytes, p = read_bytes(b, p)
    (session_lifetime_ms,) = unpack_q(b, p)
    return SaslAuthenticateResponse(
        error_code, error_message, auth_bytes, session_lifetime_ms
    ), p + 8


def _read_sasl_authenticate_response_2(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    auth_bytes, p = read_compact_bytes(b, p)
    (session_lifetime_ms,) = unpack_q(b, p)
    return SaslAuthenticateResponse(
        error_code, error_message, auth_bytes, session_lifetime_ms
    ), skip_tags(b, p + 8)


def _write_sasl_authenticate_response_0(w, o):
    w(pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_bytes(o.auth_bytes))


def _write_sasl_authenticate_response_1(w, o):
    w(
        pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_bytes(o.auth_bytes) +
        pack_q(o.session_lifetime_ms)
    )


def _write_sasl_authenticate_response_2(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_bytes(o.auth_bytes) + pack_qx(o.session_lifetime_ms)
    )


SaslAuthenticateResponse.readers = since(2, {
    0: _read_sasl_authenticate_response_0, 1: _read_sasl_authenticate_response_1, 2:
    _read_sasl_authenticate_response_2
})
SaslAuthenticateResponse.writers = since(2, {
    0: _write_sasl_authenticate_response_0, 1: _write_sasl_authenticate_response_1, 2:
    _write_sasl_authenticate_response_2
})


# -- 37: CreatePartitions ----------------------------------------------------------------------


class CreatePartitionsRequest(ApiMessage):
    """API key 37, the request, versions 0-3."""

    class CreatePartitionsAssignment(Message):
        broker_ids: Sequence[int] = ()

    class CreatePartitionsTopic(Message):
        name: str = ""
        count: int = 0
        assignments: Sequence[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ()

    topics: Sequence[CreatePartitionsRequest.CreatePartitionsTopic] = ()
    timeout_ms: int = 0
    validate_only: bool = False


def _read_create_partitions_request_create_partitions_assignment_0(b, p):
    broker_ids, p = read_numbers(b, p, "i")
    return CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids), p


def _read_create_partitions_request_create_partitions_topic_0(b, p):
    name, p = read_string(b, p)
    (count,) = unpack_i(b, p)
    assignments, p = read_nullable_array(
        b, p + 4, 4, _read_create_partitions_request_create_partitions_assignment_0
    )
    return CreatePartitionsRequest.CreatePartitionsTopic(name, count, assignments), p


def _read_create_partitions_request_0(b, p):
    topics, p = read_array(b, p, 10, _read_create_partitions_request_create_partitions_topic_0)
    timeout_ms, validate_only = unpack_it(b, p)
    return CreatePartitionsRequest(topics, timeout_ms, validate_only), p + 5


def _read_create_partitions_request_create_partitions_assignment_2(b, p):
    broker_ids, p = read_compact_numbers(b, p, "i")
    return CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids), skip_tags(b, p)


def _read_create_partitions_request_create_partitions_topic_2(b, p):
    name, p = read_compact_string(b, p)
    (count,) = unpack_i(b, p)
    assignments, p = read_compact_nullable_array(
        b, p + 4, 2, _read_create_partitions_request_create_partitions_assignment_2
    )
    return CreatePartitionsRequest.CreatePartitionsTopic(name, count, assignments), skip_tags(b, p)


def _read_create_partitions_request_2(b, p):
    topics, p = read_compact_array(
        b, p, 7, _read_create_partitions_request_create_partitions_topic_2
    )
    timeout_ms, validate_only = unpack_it(b, p)
    return CreatePartitionsRequest(topics, timeout_ms, validate_only), skip_tags(b, p + 5)


def _write_create_partitions_request_create_partitions_assignment_0(w, o):
    w(pack_numbers(o.broker_ids, "i"))


def _write_create_partitions_request_create_partitions_topic_0(w, o):
    w(pack_string(o.name) + pack_i(o.count))
    write_nullable_array(
        w, o.assignments, _write_create_partitions_request_create_partitions_assignment_0
    )


def _write_create_partitions_request_0(w, o):
    write_array(w, o.topics, _write_create_partitions_request_create_partitions_topic_0)
    w(pack_it(o.timeout_ms, o.validate_only))


def _write_create_partitions_request_create_partitions_assignment_2(w, o):
    w(pack_compact_numbers(o.broker_ids, "i") + NO_TAGS)


def _write_create_partitions_request_create_partitions_topic_2(w, o):
    w(pack_compact_string(o.name) + pack_i(o.count))
    write_compact_nullable_array(
        w, o.assignments, _write_create_partitions_request_create_partitions_assignment_2
    )
    w(NO_TAGS)


def _write_create_partitions_request_2(w, o):
    write_compact_array(w, o.topics, _write_create_partitions_request_create_partitions_topic_2)
    w(pack_itx(o.timeout_ms, o.validate_only))


CreatePartitionsRequest.readers = since(3, {
    0: _read_create_partitions_request_0, 2: _read_create_partitions_request_2
})
CreatePartitionsRequest.writers = since(3, {
    0: _write_create_partitions_request_0, 2: _write_create_partitions_request_2
})


class CreatePartitionsResponse(ApiMessage):
    """API key 37, the response, versions 0-3."""

    class CreatePartitionsTopicResult(Message):
        name: str = ""
        error_code: int = 0
        error_message: str | None = None

    throttle_time_ms: int = 0
    results: Sequence[CreatePartitionsResponse.CreatePartitionsTopicResult] = ()


def _read_create_partitions_response_create_partitions_topic_result_0(b, p):
    name, p = read_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    return CreatePartitionsResponse.CreatePartitionsTopicResult(name, error_code, error_message), p


def _read_create_partitions_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_array(
        b, p + 4, 6, _read_create_partitions_response_create_partitions_topic_result_0
    )
    return CreatePartitionsResponse(throttle_time_ms, results), p


def _read_create_partitions_response_create_partitions_topic_result_2(b, p):
    name, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name, error_code, error_message
    ), skip_tags(b, p)


def _read_create_partitions_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_compact_array(
        b, p + 4, 5, _read_create_partitions_response_create_partitions_topic_result_2
    )
    return CreatePartitionsResponse(throttle_time_ms, results), skip_tags(b, p)


def _write_create_partitions_response_create_partitions_topic_result_0(w, o):
    w(pack_string(o.name) + pack_h(o.error_code) + pack_nullable_string(o.error_message))


def _write_create_partitions_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.results, _write_create_partitions_response_create_partitions_topic_result_0)


def _write_create_partitions_response_create_partitions_topic_result_2(w, o):
    w(
        pack_compact_string(o.name) + pack_h(o.error_code) +
        pack_compact_nullable_string(o.error_message) + NO_TAGS
    )


def _write_create_partitions_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.results, _write_create_partitions_response_create_partitions_topic_result_2
    )
    w(NO_TAGS)


CreatePartitionsResponse.readers = since(3, {
    0: _read_create_partitions_response_0, 2: _read_create_partitions_response_2
})
CreatePartitionsResponse.writers = since(3, {
    0: _write_create_partitions_response_0, 2: _write_create_partitions_response_2
})


# -- 42: DeleteGroups --------------------------------------------------------------------------


class DeleteGroupsRequest(ApiMessage):
    """API key 42, the request, versions 0-2."""

    groups_names: Sequence[str] = ()


def _read_delete_groups_request_0(b, p):
    groups_names, p = read_array(b, p, 2, read_string)
    return DeleteGroupsRequest(groups_names), p


def _read_delete_groups_request_2(b, p):
    groups_names, p = read_compact_array(b, p, 1, read_compact_string)
    return DeleteGroupsRequest(groups_names), skip_tags(b, p)


def _write_delete_groups_request_0(w, o):
    w(pack_array(o.groups_names, pack_string))


def _write_delete_groups_request_2(w, o):
    w(pack_compact_array(o.groups_names, pack_compact_string) + NO_TAGS)


DeleteGroupsRequest.readers = since(2, {
    0: _read_delete_groups_request_0, 2: _read_delete_groups_request_2
})
DeleteGroupsRequest.writers = since(2, {
    0: _write_delete_groups_request_0, 2: _write_delete_groups_request_2
})


class DeleteGroupsResponse(ApiMessage):
    """API key 42, the response, versions 0-2."""

    class DeletableGroupResult(Message):
        group_id: str = ""
        error_code: int = 0

    throttle_time_ms: int = 0
    results: Sequence[DeleteGroupsResponse.DeletableGroupResult] = ()


def _read_delete_groups_response_deletable_group_result_0(b, p):
    group_id, p = read_string(b, p)
    (error_code,) = unpack_h(b, p)
    return DeleteGroupsResponse.DeletableGroupResult(group_id, error_code), p + 2


def _read_delete_groups_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_array(b, p + 4, 4, _read_delete_groups_response_deletable_group_result_0)
    return DeleteGroupsResponse(throttle_time_ms, results), p


def _read_delete_groups_response_deletable_group_result_2(b, p):
    group_id, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    return DeleteGroupsResponse.DeletableGroupResult(group_id, error_code), skip_tags(b, p + 2)


def _read_delete_groups_response_2(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_compact_array(
        b, p + 4, 4, _read_delete_groups_response_deletable_group_result_2
    )
    return DeleteGroupsResponse(throttle_time_ms, results), skip_tags(b, p)


def _write_delete_groups_response_deletable_group_result_0(w, o):
    w(pack_string(o.group_id) + pack_h(o.error_code))


def _write_delete_groups_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.results, _write_delete_groups_response_deletable_group_result_0)


def _write_delete_groups_response_deletable_group_result_2(w, o):
    w(pack_compact_string(o.group_id) + pack_hx(o.error_code))


def _write_delete_groups_response_2(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.results, _write_delete_groups_response_deletable_group_result_2)
    w(NO_TAGS)


DeleteGroupsResponse.readers = since(2, {
    0: _read_delete_groups_response_0, 2: _read_delete_groups_response_2
})
DeleteGroupsResponse.writers = since(2, {
    0: _write_delete_groups_response_0, 2: _write_delete_groups_response_2
})


# -- 43: ElectLeaders --------------------------------------------------------------------------


class ElectLeadersRequest(ApiMessage):
    """API key 43, the request, versions 0-2."""

    class TopicPartitions(Message):
        topic: str = ""
        partitions: Sequence[int] = ()

    election_type: int = 0  # 1+
    topic_partitions: Sequence[ElectLeadersRequest.TopicPartitions] | None = ()
    timeout_ms: int = 60000


def _read_elect_leaders_request_topic_partitions_0(b, p):
    topic, p = read_string(b, p)
    partitions, p = read_numbers(b, p, "i")
    return ElectLeadersRequest.TopicPartitions(topic, partitions), p


def _read_elect_leaders_request_0(b, p):
    topic_partitions, p = read_nullable_array(
        b, p, 6, _read_elect_leaders_request_topic_partitions_0
    )
    (timeout_ms,) = unpack_i(b, p)
    return ElectLeadersRequest(0, topic_partitions, timeout_ms), p + 4


def _read_elect_leaders_request_1(b, p):
    (election_type,) = unpack_b(b, p)
    topic_partitions, p = read_nullable_array(
        b, p + 1, 6, _read_elect_leaders_request_topic_partitions_0
    )
    (timeout_ms,) = unpack_i(b, p)
    return ElectLeadersRequest(election_type, topic_partitions, timeout_ms), p + 4


def _read_elect_leaders_request_topic_partitions_2(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_numbers(b, p, "i")
    return ElectLeadersRequest.TopicPartitions(topic, partitions), skip_tags(b, p)


def _read_elect_leaders_request_2(b, p):
    (election_type,) = unpack_b(b, p)
    topic_partitions, p = read_compact_nullable_array(
        b, p + 1, 3, _read_elect_leaders_request_topic_partitions_2
    )
    (timeout_ms,) = unpack_i(b, p)
    return ElectLeadersRequest(election_type, topic_partitions, timeout_ms), skip_tags(b, p + 4)


def _write_elect_leaders_request_topic_partitions_0(w, o):
    w(pack_string(o.topic) + pack_numbers(o.partitions, "i"))


def _write_elect_leaders_request_0(w, o):
    write_nullable_array(w, o.topic_partitions, _write_elect_leaders_request_topic_partitions_0)
    w(pack_i(o.timeout_ms))


def _write_elect_leaders_request_1(w, o):
    w(pack_b(o.election_type))
    write_nullable_array(w, o.topic_partitions, _write_elect_leaders_request_topic_partitions_0)
    w(pack_i(o.timeout_ms))


def _write_elect_leaders_request_topic_partitions_2(w, o):
    w(pack_compact_string(o.topic) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_elect_leaders_request_2(w, o):
    w(pack_b(o.election_type))
    write_compact_nullable_array(
        w, o.topic_partitions, _write_elect_leaders_request_topic_partitions_2
    )
    w(pack_ix(o.timeout_ms))


ElectLeadersRequest.readers = since(2, {
    0: _read_elect_leaders_request_0, 1: _read_elect_leaders_request_1, 2:
    _read_elect_leaders_request_2
})
ElectLeadersRequest.writers = since(2, {
    0: _write_elect_leaders_request_0, 1: _write_elect_leaders_request_1, 2:
    _write_elect_leaders_request_2
})


class ElectLeadersResponse(ApiMessage):
    """API key 43, the response, versions 0-2."""

    class PartitionResult(Message):
        partition_id: int = 0
        error_code: int = 0
        error_message: str | None = ""

    class ReplicaElectionResult(Message):
        topic: str = ""
        partition_result: Sequence[ElectLeadersResponse.PartitionResult] = ()

    throttle_time_ms: int = 0
    error_code: int = 0  # 1+
    replica_election_results: Sequence[ElectLeadersResponse.ReplicaElectionResult] = ()


def _read_elect_leaders_response_partition_result_0(b, p):
    partition_id, error_code = unpack_ih(b, p)
    error_message, p = read_nullable_string(b, p + 6)
    return ElectLeadersResponse.PartitionResult(partition_id, error_code, error_message), p


def _read_elect_leaders_response_replica_election_result_0(b, p):
    topic, p = read_string(b, p)
    partition_result, p = read_array(b, p, 8, _read_elect_leaders_response_partition_result_0)
    return ElectLeadersResponse.ReplicaElectionResult(topic, partition_result), p


def _read_elect_leaders_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    replica_election_results, p = read_array(
        b, p + 4, 6, _read_elect_leaders_response_replica_election_result_0
    )
    return ElectLeadersResponse(throttle_time_ms, 0, replica_election_results), p


def _read_elect_leaders_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    replica_election_results, p = read_array(
        b, p + 6, 6, _read_elect_leaders_response_replica_election_result_0
    )
    return ElectLeadersResponse(throttle_time_ms, error_code, replica_election_results), p


def _read_elect_leaders_response_partition_result_2(b, p):
    partition_id, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    return ElectLeadersResponse.PartitionResult(
        partition_id, error_code, error_message
    ), skip_tags(b, p)


def _read_elect_leaders_response_replica_election_result_2(b, p):
    topic, p = read_compact_string(b, p)
    partition_result, p = read_compact_array(
        b, p, 8, _read_elect_leaders_response_partition_result_2
    )
    return ElectLeadersResponse.ReplicaElectionResult(topic, partition_result), skip_tags(b, p)


def _read_elect_leaders_response_2(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    replica_election_results, p = read_compact_array(
        b, p + 6, 3, _read_elect_leaders_response_replica_election_result_2
    )
    return ElectLeadersResponse(
        throttle_time_ms, error_code, replica_election_results
    ), skip_tags(b, p)


def _write_elect_leaders_response_partition_result_0(w, o):
    w(pack_ih(o.partition_id, o.error_code) + pack_nullable_string(o.error_message))


def _write_elect_leaders_response_replica_election_result_0(w, o):
    w(pack_string(o.topic))
    write_array(w, o.partition_result, _write_elect_leaders_response_partition_result_0)


def _write_elect_leaders_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(
        w, o.replica_election_results, _write_elect_leaders_response_replica_election_result_0
    )


def _write_elect_leaders_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_array(
        w, o.replica_election_results, _write_elect_leaders_response_replica_election_result_0
    )


def _write_elect_leaders_response_partition_result_2(w, o):
    w(
        pack_ih(o.partition_id, o.error_code) + pack_compact_nullable_string(o.error_message) +
        NO_TAGS
    )


def _write_elect_leaders_response_replica_election_result_2(w, o):
    w(pack_compact_string(o.topic))
    write_compact_array(w, o.partition_result, _write_elect_leaders_response_partition_result_2)
    w(NO_TAGS)


def _write_elect_leaders_response_2(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(
        w, o.replica_election_results, _write_elect_leaders_response_replica_election_result_2
    )
    w(NO_TAGS)


ElectLeadersResponse.readers = since(2, {
    0: _read_elect_leaders_response_0, 1: _read_elect_leaders_response_1, 2:
    _read_elect_leaders_response_2
})
ElectLeadersResponse.writers = since(2, {
    0: _write_elect_leaders_response_0, 1: _write_elect_leaders_response_1, 2:
    _write_elect_leaders_response_2
})


# -- 44: IncrementalAlterConfigs ---------------------------------------------------------------


class IncrementalAlterConfigsRequest(ApiMessage):
    """API key 44, the request, versions 0-1."""

    class AlterableConfig(Message):
        name: str = ""
        config_operation: int = 0
        value: str | None = ""

    class AlterConfigsResource(Message):
        resource_type: int = 0
        resource_name: str = ""
        configs: Sequence[IncrementalAlterConfigsRequest.AlterableConfig] = ()

    resources: Sequence[IncrementalAlterConfigsRequest.AlterConfigsResource] = ()
    validate_only: bool = False


def _read_incremental_alter_configs_request_alterable_config_0(b, p):
    name, p = read_string(b, p)
    (config_operation,) = unpack_b(b, p)
    value, p = read_nullable_string(b, p + 1)
    return IncrementalAlterConfigsRequest.AlterableConfig(name, config_operation, value), p


def _read_incremental_alter_configs_request_alter_configs_resource_0(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    configs, p = read_array(b, p, 5, _read_incremental_alter_configs_request_alterable_config_0)
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type, resource_name, configs
    ), p


def _read_incremental_alter_configs_request_0(b, p):
    resources, p = read_array(
        b, p, 7, _read_incremental_alter_configs_request_alter_configs_resource_0
    )
    (validate_only,) = unpack_t(b, p)
    return IncrementalAlterConfigsRequest(resources, validate_only), p + 1


def _read_incremental_alter_configs_request_alterable_config_1(b, p):
    name, p = read_compact_string(b, p)
    (config_operation,) = unpack_b(b, p)
    value, p = read_compact_nullable_string(b, p + 1)
    return IncrementalAlterConfigsRequest.AlterableConfig(
        name, config_operation, value
    ), skip_tags(b, p)


def _read_incremental_alter_configs_request_alter_configs_resource_1(b, p):
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    configs, p = read_compact_array(
        b, p, 4, _read_incremental_alter_configs_request_alterable_config_1
    )
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type, resource_name, configs
    ), skip_tags(b, p)


def _read_incremental_alter_configs_request_1(b, p):
    resources, p = read_compact_array(
        b, p, 4, _read_incremental_alter_configs_request_alter_configs_resource_1
    )
    (validate_only,) = unpack_t(b, p)
    return IncrementalAlterConfigsRequest(resources, validate_only), skip_tags(b, p + 1)


def _write_incremental_alter_configs_request_alterable_config_0(w, o):
    w(pack_string(o.name) + pack_b(o.config_operation) + pack_nullable_string(o.value))


def _write_incremental_alter_configs_request_alter_configs_resource_0(w, o):
    w(pack_b(o.resource_type) + pack_string(o.resource_name))
    write_array(w, o.configs, _write_incremental_alter_configs_request_alterable_config_0)


def _write_incremental_alter_configs_request_0(w, o):
    write_array(w, o.resources, _write_incremental_alter_configs_request_alter_configs_resource_0)
    w(pack_t(o.validate_only))


def _write_incremental_alter_configs_request_alterable_config_1(w, o):
    w(
        pack_compact_string(o.name) + pack_b(o.config_operation) +
        pack_compact_nullable_string(o.value) + NO_TAGS
    )


def _write_incremental_alter_configs_request_alter_configs_resource_1(w, o):
    w(pack_b(o.resource_type) + pack_compact_string(o.resource_name))
    write_compact_array(w, o.configs, _write_incremental_alter_configs_request_alterable_config_1)
    w(NO_TAGS)


def _write_incremental_alter_configs_request_1(w, o):
    write_compact_array(
        w, o.resources, _write_incremental_alter_configs_request_alter_configs_resource_1
    )
    w(pack_tx(o.validate_only))


IncrementalAlterConfigsRequest.readers = since(1, {
    0: _read_incremental_alter_configs_request_0, 1: _read_incremental_alter_configs_request_1
})
IncrementalAlterConfigsRequest.writers = since(1, {
    0: _write_incremental_alter_configs_request_0, 1: _write_incremental_alter_configs_request_1
})


class IncrementalAlterConfigsResponse(ApiMessage):
    """API key 44, the response, versions 0-1."""

    class AlterConfigsResourceResponse(Message):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""

    throttle_time_ms: int = 0
    responses: Sequence[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ()


def _read_incremental_alter_configs_response_alter_configs_resource_response_0(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_string(b, p + 1)
    return IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code, error_message, resource_type, resource_name
    ), p


def _read_incremental_alter_configs_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_array(
        b, p + 4, 7, _read_incremental_alter_configs_response_alter_configs_resource_response_0
    )
    return IncrementalAlterConfigsResponse(throttle_time_ms, responses), p


def _read_incremental_alter_configs_response_alter_configs_resource_response_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    (resource_type,) = unpack_b(b, p)
    resource_name, p = read_compact_string(b, p + 1)
    return IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code, error_message, resource_type, resource_name
    ), skip_tags(b, p)


def _read_incremental_alter_configs_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    responses, p = read_compact_array(
        b, p + 4, 6, _read_incremental_alter_configs_response_alter_configs_resource_response_1
    )
    return IncrementalAlterConfigsResponse(throttle_time_ms, responses), skip_tags(b, p)


def _write_incremental_alter_configs_response_alter_configs_resource_response_0(w, o):
    w(
        pack_h(o.error_code) + pack_nullable_string(o.error_message) + pack_b(o.resource_type) +
        pack_string(o.resource_name)
    )


def _write_incremental_alter_configs_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(
        w, o.responses, _write_incremental_alter_configs_response_alter_configs_resource_response_0
    )


def _write_incremental_alter_configs_response_alter_configs_resource_response_1(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_b(o.resource_type) + pack_compact_string(o.resource_name) + NO_TAGS
    )


def _write_incremental_alter_configs_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.responses, _write_incremental_alter_configs_response_alter_configs_resource_response_1
    )
    w(NO_TAGS)


IncrementalAlterConfigsResponse.readers = since(1, {
    0: _read_incremental_alter_configs_response_0, 1: _read_incremental_alter_configs_response_1
})
IncrementalAlterConfigsResponse.writers = since(1, {
    0: _write_incremental_alter_configs_response_0, 1: _write_incremental_alter_configs_response_1
})


# -- 45: AlterPartitionReassignments -----------------------------------------------------------


class AlterPartitionReassignmentsRequest(ApiMessage):
    """API key 45, the request, versions 0-1."""

    class ReassignablePartition(Message):
        partition_index: int = 0
        replicas: Sequence[int] | None = None

    class ReassignableTopic(Message):
        name: str = ""
        partitions: Sequence[AlterPartitionReassignmentsRequest.ReassignablePartition] = ()

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True  # 1+
    topics: Sequence[AlterPartitionReassignmentsRequest.ReassignableTopic] = ()


def _read_alter_partition_reassignments_request_reassignable_partition_0(b, p):
    (partition_index,) = unpack_i(b, p)
    replicas, p = read_compact_nullable_numbers(b, p + 4, "i")
    return AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index, replicas
    ), skip_tags(b, p)


def _read_alter_partition_reassignments_request_reassignable_topic_0(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 6, _read_alter_partition_reassignments_request_reassignable_partition_0
    )
    return AlterPartitionReassignmentsRequest.ReassignableTopic(name, partitions), skip_tags(b, p)


def _read_alter_partition_reassignments_request_0(b, p):
    (timeout_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 3, _read_alter_partition_reassignments_request_reassignable_topic_0
    )
    return AlterPartitionReassignmentsRequest(timeout_ms, True, topics), skip_tags(b, p)


def _read_alter_partition_reassignments_request_1(b, p):
    timeout_ms, allow_replication_factor_change = unpack_it(b, p)
    topics, p = read_compact_array(
        b, p + 5, 3, _read_alter_partition_reassignments_request_reassignable_topic_0
    )
    return AlterPartitionReassignmentsRequest(
        timeout_ms, allow_replication_factor_change, topics
    ), skip_tags(b, p)


def _write_alter_partition_reassignments_request_reassignable_partition_0(w, o):
    w(pack_i(o.partition_index) + pack_compact_nullable_numbers(o.replicas, "i") + NO_TAGS)


def _write_alter_partition_reassignments_request_reassignable_topic_0(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions, _write_alter_partition_reassignments_request_reassignable_partition_0
    )
    w(NO_TAGS)


def _write_alter_partition_reassignments_request_0(w, o):
    w(pack_i(o.timeout_ms))
    write_compact_array(
        w, o.topics, _write_alter_partition_reassignments_request_reassignable_topic_0
    )
    w(NO_TAGS)


def _write_alter_partition_reassignments_request_1(w, o):
    w(pack_it(o.timeout_ms, o.allow_replication_factor_change))
    write_compact_array(
        w, o.topics, _write_alter_partition_reassignments_request_reassignable_topic_0
    )
    w(NO_TAGS)


AlterPartitionReassignmentsRequest.readers = since(1, {
    0: _read_alter_partition_reassignments_request_0, 1:
    _read_alter_partition_reassignments_request_1
})
AlterPartitionReassignmentsRequest.writers = since(1, {
    0: _write_alter_partition_reassignments_request_0, 1:
    _write_alter_partition_reassignments_request_1
})


class AlterPartitionReassignmentsResponse(ApiMessage):
    """API key 45, the response, versions 0-1."""

    class ReassignablePartitionResponse(Message):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = ""

    class ReassignableTopicResponse(Message):
        name: str = ""
        partitions: Sequence[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ()

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True  # 1+
    error_code: int = 0
    error_message: str | None = ""
    responses: Sequence[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ()


def _read_alter_partition_reassignments_response_reassignable_partition_response_0(b, p):
    partition_index, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    return AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
        partition_index, error_code, error_message
    ), skip_tags(b, p)


def _read_alter_partition_reassignments_response_reassignable_topic_response_0(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 8, _read_alter_partition_reassignments_response_reassignable_partition_response_0
    )
    return AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
        name, partitions
    ), skip_tags(b, p)


def _read_alter_partition_reassignments_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    responses, p = read_compact_array(
        b, p, 3, _read_alter_partition_reassignments_response_reassignable_topic_response_0
    )
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms, True, error_code, error_message, responses
    ), skip_tags(b, p)


def _read_alter_partition_reassignments_response_1(b, p):
    throttle_time_ms, allow_replication_factor_change, error_code = unpack_ith(b, p)
    error_message, p = read_compact_nullable_string(b, p + 7)
    responses, p = read_compact_array(
        b, p, 3, _read_alter_partition_reassignments_response_reassignable_topic_response_0
    )
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms, allow_replication_factor_change, error_code, error_message, responses
    ), skip_tags(b, p)


def _write_alter_partition_reassignments_response_reassignable_partition_response_0(w, o):
    w(
        pack_ih(o.partition_index, o.error_code) + pack_compact_nullable_string(o.error_message) +
        NO_TAGS
    )


def _write_alter_partition_reassignments_response_reassignable_topic_response_0(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions,
        _write_alter_partition_reassignments_response_reassignable_partition_response_0
    )
    w(NO_TAGS)


def _write_alter_partition_reassignments_response_0(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(
        w, o.responses, _write_alter_partition_reassignments_response_reassignable_topic_response_0
    )
    w(NO_TAGS)


def _write_alter_partition_reassignments_response_1(w, o):
    w(
        pack_ith(o.throttle_time_ms, o.allow_replication_factor_change, o.error_code) +
        pack_compact_nullable_string(o.error_message)
    )
    write_compact_array(
        w, o.responses, _write_alter_partition_reassignments_response_reassignable_topic_response_0
    )
    w(NO_TAGS)


AlterPartitionReassignmentsResponse.readers = since(1, {
    0: _read_alter_partition_reassignments_response_0, 1:
    _read_alter_partition_reassignments_response_1
})
AlterPartitionReassignmentsResponse.writers = since(1, {
    0: _write_alter_partition_reassignments_response_0, 1:
    _write_alter_partition_reassignments_response_1
})


# -- 46: ListPartitionReassignments ------------------------------------------------------------


class ListPartitionReassignmentsRequest(ApiMessage):
    """API key 46, the request, version 0."""

    class ListPartitionReassignmentsTopics(Message):
        name: str = ""
        partition_indexes: Sequence[int] = ()

    timeout_ms: int = 60000
    topics: Sequence[
        ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    ] | None = None


def _read_list_partition_reassignments_request_list_partition_reassignments_topics_0(b, p):
    name, p = read_compact_string(b, p)
    partition_indexes, p = read_compact_numbers(b, p, "i")
    return ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
        name, partition_indexes
    ), skip_tags(b, p)


def _read_list_partition_reassignments_request_0(b, p):
    (timeout_ms,) = unpack_i(b, p)
    topics, p = read_compact_nullable_array(
        b, p + 4, 3,
        _read_list_partition_reassignments_request_list_partition_reassignments_topics_0
    )
    return ListPartitionReassignmentsRequest(timeout_ms, topics), skip_tags(b, p)


def _write_list_partition_reassignments_request_list_partition_reassignments_topics_0(w, o):
    w(pack_compact_string(o.name) + pack_compact_numbers(o.partition_indexes, "i") + NO_TAGS)


def _write_list_partition_reassignments_request_0(w, o):
    w(pack_i(o.timeout_ms))
    write_compact_nullable_array(
        w, o.topics,
        _write_list_partition_reassignments_request_list_partition_reassignments_topics_0
    )
    w(NO_TAGS)


ListPartitionReassignmentsRequest.readers = since(0, {
    0: _read_list_partition_reassignments_request_0
})
ListPartitionReassignmentsRequest.writers = since(0, {
    0: _write_list_partition_reassignments_request_0
})


class ListPartitionReassignmentsResponse(ApiMessage):
    """API key 46, the response, version 0."""

    class OngoingPartitionReassignment(Message):
        partition_index: int = 0
        replicas: Sequence[int] = ()
        adding_replicas: Sequence[int] = ()
        removing_replicas: Sequence[int] = ()

    class OngoingTopicReassignment(Message):
        name: str = ""
        partitions: Sequence[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: Sequence[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ()


def _read_list_partition_reassignments_response_ongoing_partition_reassignment_0(b, p):
    (partition_index,) = unpack_i(b, p)
    replicas, p = read_compact_numbers(b, p + 4, "i")
    adding_replicas, p = read_compact_numbers(b, p, "i")
    removing_replicas, p = read_compact_numbers(b, p, "i")
    return ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
        partition_index, replicas, adding_replicas, removing_replicas
    ), skip_tags(b, p)


def _read_list_partition_reassignments_response_ongoing_topic_reassignment_0(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 8, _read_list_partition_reassignments_response_ongoing_partition_reassignment_0
    )
    return ListPartitionReassignmentsResponse.OngoingTopicReassignment(
        name, partitions
    ), skip_tags(b, p)


def _read_list_partition_reassignments_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    topics, p = read_compact_array(
        b, p, 3, _read_list_partition_reassignments_response_ongoing_topic_reassignment_0
    )
    return ListPartitionReassignmentsResponse(
        throttle_time_ms, error_code, error_message, topics
    ), skip_tags(b, p)


def _write_list_partition_reassignments_response_ongoing_partition_reassignment_0(w, o):
    w(
        pack_i(o.partition_index) + pack_compact_numbers(o.replicas, "i") +
        pack_compact_numbers(o.adding_replicas, "i") + pack_compact_numbers(o.removing_replicas,
        "i") + NO_TAGS
    )


def _write_list_partition_reassignments_response_ongoing_topic_reassignment_0(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(
        w, o.partitions,
        _write_list_partition_reassignments_response_ongoing_partition_reassignment_0
    )
    w(NO_TAGS)


def _write_list_partition_reassignments_response_0(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(
        w, o.topics, _write_list_partition_reassignments_response_ongoing_topic_reassignment_0
    )
    w(NO_TAGS)


ListPartitionReassignmentsResponse.readers = since(0, {
    0: _read_list_partition_reassignments_response_0
})
ListPartitionReassignmentsResponse.writers = since(0, {
    0: _write_list_partition_reassignments_response_0
})


# -- 47: OffsetDelete --------------------------------------------------------------------------


class OffsetDeleteRequest(ApiMessage):
    """API key 47, the request, version 0."""

    class OffsetDeleteRequestPartition(Message):
        partition_index: int = 0

    class OffsetDeleteRequestTopic(Message):
        name: str = ""
        partitions: Sequence[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ()

    group_id: str = ""
    topics: Sequence[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ()


def _read_offset_delete_request_offset_delete_request_partition_0(b, p):
    (partition_index,) = unpack_i(b, p)
    return OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index), p + 4


def _read_offset_delete_request_offset_delete_request_topic_0(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 4, _read_offset_delete_request_offset_delete_request_partition_0
    )
    return OffsetDeleteRequest.OffsetDeleteRequestTopic(name, partitions), p


def _read_offset_delete_request_0(b, p):
    group_id, p = read_string(b, p)
    topics, p = read_array(b, p, 6, _read_offset_delete_request_offset_delete_request_topic_0)
    return OffsetDeleteRequest(group_id, topics), p


def _write_offset_delete_request_offset_delete_request_partition_0(w, o):
    w(pack_i(o.partition_index))


def _write_offset_delete_request_offset_delete_request_topic_0(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_delete_request_offset_delete_request_partition_0)


def _write_offset_delete_request_0(w, o):
    w(pack_string(o.group_id))
    write_array(w, o.topics, _write_offset_delete_request_offset_delete_request_topic_0)


OffsetDeleteRequest.readers = since(0, {0: _read_offset_delete_request_0})
OffsetDeleteRequest.writers = since(0, {0: _write_offset_delete_request_0})


class OffsetDeleteResponse(ApiMessage):
    """API key 47, the response, version 0."""

    class OffsetDeleteResponsePartition(Message):
        partition_index: int = 0
        error_code: int = 0

    class OffsetDeleteResponseTopic(Message):
        name: str = ""
        partitions: Sequence[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ()

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: Sequence[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ()


def _read_offset_delete_response_offset_delete_response_partition_0(b, p):
    partition_index, error_code = unpack_ih(b, p)
    return OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index, error_code), p + 6


def _read_offset_delete_response_offset_delete_response_topic_0(b, p):
    name, p = read_string(b, p)
    partitions, p = read_array(
        b, p, 6, _read_offset_delete_response_offset_delete_response_partition_0
    )
    return OffsetDeleteResponse.OffsetDeleteResponseTopic(name, partitions), p


def _read_offset_delete_response_0(b, p):
    error_code, throttle_time_ms = unpack_hi(b, p)
    topics, p = read_array(b, p + 6, 6, _read_offset_delete_response_offset_delete_response_topic_0)
    return OffsetDeleteResponse(error_code, throttle_time_ms, topics), p


def _write_offset_delete_response_offset_delete_response_partition_0(w, o):
    w(pack_ih(o.partition_index, o.error_code))


def _write_offset_delete_response_offset_delete_response_topic_0(w, o):
    w(pack_string(o.name))
    write_array(w, o.partitions, _write_offset_delete_response_offset_delete_response_partition_0)


def _write_offset_delete_response_0(w, o):
    w(pack_hi(o.error_code, o.throttle_time_ms))
    write_array(w, o.topics, _write_offset_delete_response_offset_delete_response_topic_0)


OffsetDeleteResponse.readers = since(0, {0: _read_offset_delete_response_0})
OffsetDeleteResponse.writers = since(0, {0: _write_offset_delete_response_0})


# -- 48: DescribeClientQuotas ------------------------------------------------------------------


class DescribeClientQuotasRequest(ApiMessage):
    """API key 48, the request, versions 0-1."""

    class ComponentData(Message):
        entity_type: str = ""
        match_type: int = 0
        match: str | None = ""

    components: Sequence[DescribeClientQuotasRequest.ComponentData] = ()
    strict: bool = False


def _read_describe_client_quotas_request_component_data_0(b, p):
    entity_type, p = read_string(b, p)
    (match_type,) = unpack_b(b, p)
    match, p = read_nullable_string(b, p + 1)
    return DescribeClientQuotasRequest.ComponentData(entity_type, match_type, match), p


def _read_describe_client_quotas_request_0(b, p):
    components, p = read_array(b, p, 5, _read_describe_client_quotas_request_component_data_0)
    (strict,) = unpack_t(b, p)
    return DescribeClientQuotasRequest(components, strict), p + 1


def _read_describe_client_quotas_request_component_data_1(b, p):
    entity_type, p = read_compact_string(b, p)
    (match_type,) = unpack_b(b, p)
    match, p = read_compact_nullable_string(b, p + 1)
    return DescribeClientQuotasRequest.ComponentData(
        entity_type, match_type, match
    ), skip_tags(b, p)


def _read_describe_client_quotas_request_1(b, p):
    components, p = read_compact_array(
        b, p, 4, _read_describe_client_quotas_request_component_data_1
    )
    (strict,) = unpack_t(b, p)
    return DescribeClientQuotasRequest(components, strict), skip_tags(b, p + 1)


def _write_describe_client_quotas_request_component_data_0(w, o):
    w(pack_string(o.entity_type) + pack_b(o.match_type) + pack_nullable_string(o.match))


def _write_describe_client_quotas_request_0(w, o):
    write_array(w, o.components, _write_describe_client_quotas_request_component_data_0)
    w(pack_t(o.strict))


def _write_describe_client_quotas_request_component_data_1(w, o):
    w(
        pack_compact_string(o.entity_type) + pack_b(o.match_type) +
        pack_compact_nullable_string(o.match) + NO_TAGS
    )


def _write_describe_client_quotas_request_1(w, o):
    write_compact_array(w, o.components, _write_describe_client_quotas_request_component_data_1)
    w(pack_tx(o.strict))


DescribeClientQuotasRequest.readers = since(1, {
    0: _read_describe_client_quotas_request_0, 1: _read_describe_client_quotas_request_1
})
DescribeClientQuotasRequest.writers = since(1, {
    0: _write_describe_client_quotas_request_0, 1: _write_describe_client_quotas_request_1
})


class DescribeClientQuotasResponse(ApiMessage):
    """API key 48, the response, versions 0-1."""

    class EntityData(Message):
        entity_type: str = ""
        entity_name: str | None = ""

    class ValueData(Message):
        key: str = ""
        value: float = 0.0

    class EntryData(Message):
        entity: Sequence[DescribeClientQuotasResponse.EntityData] = ()
        values: Sequence[DescribeClientQuotasResponse.ValueData] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: Sequence[DescribeClientQuotasResponse.EntryData] | None = ()


def _read_describe_client_quotas_response_entity_data_0(b, p):
    entity_type, p = read_string(b, p)
    entity_name, p = read_nullable_string(b, p)
    return DescribeClientQuotasResponse.EntityData(entity_type, entity_name), p


def _read_describe_client_quotas_response_value_data_0(b, p):
    key, p = read_string(b, p)
    (value,) = unpack_d(b, p)
    return DescribeClientQuotasResponse.ValueData(key, value), p + 8


def _read_describe_client_quotas_response_entry_data_0(b, p):
    entity, p = read_array(b, p, 4, _read_describe_client_quotas_response_entity_data_0)
    values, p = read_array(b, p, 10, _read_describe_client_quotas_response_value_data_0)
    return DescribeClientQuotasResponse.EntryData(entity, values), p


def _read_describe_client_quotas_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_nullable_string(b, p + 6)
    entries, p = read_nullable_array(b, p, 8, _read_describe_client_quotas_response_entry_data_0)
    return DescribeClientQuotasResponse(throttle_time_ms, error_code, error_message, entries), p


def _read_describe_client_quotas_response_entity_data_1(b, p):
    entity_type, p = read_compact_string(b, p)
    entity_name, p = read_compact_nullable_string(b, p)
    return DescribeClientQuotasResponse.EntityData(entity_type, entity_name), skip_tags(b, p)


def _read_describe_client_quotas_response_value_data_1(b, p):
    key, p = read_compact_string(b, p)
    (value,) = unpack_d(b, p)
    return DescribeClientQuotasResponse.ValueData(key, value), skip_tags(b, p + 8)


def _read_describe_client_quotas_response_entry_data_1(b, p):
    entity, p = read_compact_array(b, p, 3, _read_describe_client_quotas_response_entity_data_1)
    values, p = read_compact_array(b, p, 10, _read_describe_client_quotas_response_value_data_1)
    return DescribeClientQuotasResponse.EntryData(entity, values), skip_tags(b, p)


def _read_describe_client_quotas_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    entries, p = read_compact_nullable_array(
        b, p, 3, _read_describe_client_quotas_response_entry_data_1
    )
    return DescribeClientQuotasResponse(
        throttle_time_ms, error_code, error_message, entries
    ), skip_tags(b, p)


def _write_describe_client_quotas_response_entity_data_0(w, o):
    w(pack_string(o.entity_type) + pack_nullable_string(o.entity_name))


def _write_describe_client_quotas_response_value_data_0(w, o):
    w(pack_string(o.key) + pack_d(o.value))


def _write_describe_client_quotas_response_entry_data_0(w, o):
    write_array(w, o.entity, _write_describe_client_quotas_response_entity_data_0)
    write_array(w, o.values, _write_describe_client_quotas_response_value_data_0)


def _write_describe_client_quotas_response_0(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_nullable_string(o.error_message))
    write_nullable_array(w, o.entries, _write_describe_client_quotas_response_entry_data_0)


def _write_describe_client_quotas_response_entity_data_1(w, o):
    w(pack_compact_string(o.entity_type) + pack_compact_nullable_string(o.entity_name) + NO_TAGS)


def _write_describe_client_quotas_response_value_data_1(w, o):
    w(pack_compact_string(o.key) + pack_dx(o.value))


def _write_describe_client_quotas_response_entry_data_1(w, o):
    write_compact_array(w, o.entity, _write_describe_client_quotas_response_entity_data_1)
    write_compact_array(w, o.values, _write_describe_client_quotas_response_value_data_1)
    w(NO_TAGS)


def _write_describe_client_quotas_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_nullable_array(w, o.entries, _write_describe_client_quotas_response_entry_data_1)
    w(NO_TAGS)


DescribeClientQuotasResponse.readers = since(1, {
    0: _read_describe_client_quotas_response_0, 1: _read_describe_client_quotas_response_1
})
DescribeClientQuotasResponse.writers = since(1, {
    0: _write_describe_client_quotas_response_0, 1: _write_describe_client_quotas_response_1
})


# -- 49: AlterClientQuotas ---------------------------------------------------------------------


class AlterClientQuotasRequest(ApiMessage):
    """API key 49, the request, versions 0-1."""

    class EntityData(Message):
        entity_type: str = ""
        entity_name: str | None = ""

    class OpData(Message):
        key: str = ""
        value: float = 0.0
        remove: bool = False

    class EntryData(Message):
        entity: Sequence[AlterClientQuotasRequest.EntityData] = ()
        ops: Sequence[AlterClientQuotasRequest.OpData] = ()

    entries: Sequence[AlterClientQuotasRequest.EntryData] = ()
    validate_only: bool = False


def _read_alter_client_quotas_request_entity_data_0(b, p):
    entity_type, p = read_string(b, p)
    entity_name, p = read_nullable_string(b, p)
    return AlterClientQuotasRequest.EntityData(entity_type, entity_name), p


def _read_alter_client_quotas_request_op_data_0(b, p):
    key, p = read_string(b, p)
    value, remove = unpack_dt(b, p)
    return AlterClientQuotasRequest.OpData(key, value, remove), p + 9


def _read_alter_client_quotas_request_entry_data_0(b, p):
    entity, p = read_array(b, p, 4, _read_alter_client_quotas_request_entity_data_0)
    ops, p = read_array(b, p, 11, _read_alter_client_quotas_request_op_data_0)
    return AlterClientQuotasRequest.EntryData(entity, ops), p


def _read_alter_client_quotas_request_0(b, p):
    entries, p = read_array(b, p, 8, _read_alter_client_quotas_request_entry_data_0)
    (validate_only,) = unpack_t(b, p)
    return AlterClientQuotasRequest(entries, validate_only), p + 1


def _read_alter_client_quotas_request_entity_data_1(b, p):
    entity_type, p = read_compact_string(b, p)
    entity_name, p = read_compact_nullable_string(b, p)
    return AlterClientQuotasRequest.EntityData(entity_type, entity_name), skip_tags(b, p)


def _read_alter_client_quotas_request_op_data_1(b, p):
    key, p = read_compact_string(b, p)
    value, remove = unpack_dt(b, p)
    return AlterClientQuotasRequest.OpData(key, value, remove), skip_tags(b, p + 9)


def _read_alter_client_quotas_request_entry_data_1(b, p):
    entity, p = read_compact_array(b, p, 3, _read_alter_client_quotas_request_entity_data_1)
    ops, p = read_compact_array(b, p, 11, _read_alter_client_quotas_request_op_data_1)
    return AlterClientQuotasRequest.EntryData(entity, ops), skip_tags(b, p)


def _read_alter_client_quotas_request_1(b, p):
    entries, p = read_compact_array(b, p, 3, _read_alter_client_quotas_request_entry_data_1)
    (validate_only,) = unpack_t(b, p)
    return AlterClientQuotasRequest(entries, validate_only), skip_tags(b, p + 1)


def _write_alter_client_quotas_request_entity_data_0(w, o):
    w(pack_string(o.entity_type) + pack_nullable_string(o.entity_name))


def _write_alter_client_quotas_request_op_data_0(w, o):
    w(pack_string(o.key) + pack_dt(o.value, o.remove))


def _write_alter_client_quotas_request_entry_data_0(w, o):
    write_array(w, o.entity, _write_alter_client_quotas_request_entity_data_0)
    write_array(w, o.ops, _write_alter_client_quotas_request_op_data_0)


def _write_alter_client_quotas_request_0(w, o):
    write_array(w, o.entries, _write_alter_client_quotas_request_entry_data_0)
    w(pack_t(o.validate_only))


def _write_alter_client_quotas_request_entity_data_1(w, o):
    w(pack_compact_string(o.entity_type) + pack_compact_nullable_string(o.entity_name) + NO_TAGS)


def _write_alter_client_quotas_request_op_data_1(w, o):
    w(pack_compact_string(o.key) + pack_dtx(o.value, o.remove))


def _write_alter_client_quotas_request_entry_data_1(w, o):
    write_compact_array(w, o.entity, _write_alter_client_quotas_request_entity_data_1)
    write_compact_array(w, o.ops, _write_alter_client_quotas_request_op_data_1)
    w(NO_TAGS)


def _write_alter_client_quotas_request_1(w, o):
    write_compact_array(w, o.entries, _write_alter_client_quotas_request_entry_data_1)
    w(pack_tx(o.validate_only))


AlterClientQuotasRequest.readers = since(1, {
    0: _read_alter_client_quotas_request_0, 1: _read_alter_client_quotas_request_1
})
AlterClientQuotasRequest.writers = since(1, {
    0: _write_alter_client_quotas_request_0, 1: _write_alter_client_quotas_request_1
})


class AlterClientQuotasResponse(ApiMessage):
    """API key 49, the response, versions 0-1."""

    class EntityData(Message):
        entity_type: str = ""
        entity_name: str | None = ""

    class EntryData(Message):
        error_code: int = 0
        error_message: str | None = ""
        entity: Sequence[AlterClientQuotasResponse.EntityData] = ()

    throttle_time_ms: int = 0
    entries: Sequence[AlterClientQuotasResponse.EntryData] = ()


def _read_alter_client_quotas_response_entity_data_0(b, p):
    entity_type, p = read_string(b, p)
    entity_name, p = read_nullable_string(b, p)
    return AlterClientQuotasResponse.EntityData(entity_type, entity_name), p


def _read_alter_client_quotas_response_entry_data_0(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_nullable_string(b, p + 2)
    entity, p = read_array(b, p, 4, _read_alter_client_quotas_response_entity_data_0)
    return AlterClientQuotasResponse.EntryData(error_code, error_message, entity), p


def _read_alter_client_quotas_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    entries, p = read_array(b, p + 4, 8, _read_alter_client_quotas_response_entry_data_0)
    return AlterClientQuotasResponse(throttle_time_ms, entries), p


def _read_alter_client_quotas_response_entity_data_1(b, p):
    entity_type, p = read_compact_string(b, p)
    entity_name, p = read_compact_nullable_string(b, p)
    return AlterClientQuotasResponse.EntityData(entity_type, entity_name), skip_tags(b, p)


def _read_alter_client_quotas_response_entry_data_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    entity, p = read_compact_array(b, p, 3, _read_alter_client_quotas_response_entity_data_1)
    return AlterClientQuotasResponse.EntryData(error_code, error_message, entity), skip_tags(b, p)


def _read_alter_client_quotas_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    entries, p = read_compact_array(b, p + 4, 5, _read_alter_client_quotas_response_entry_data_1)
    return AlterClientQuotasResponse(throttle_time_ms, entries), skip_tags(b, p)


def _write_alter_client_quotas_response_entity_data_0(w, o):
    w(pack_string(o.entity_type) + pack_nullable_string(o.entity_name))


def _write_alter_client_quotas_response_entry_data_0(w, o):
    w(pack_h(o.error_code) + pack_nullable_string(o.error_message))
    write_array(w, o.entity, _write_alter_client_quotas_response_entity_data_0)


def _write_alter_client_quotas_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_array(w, o.entries, _write_alter_client_quotas_response_entry_data_0)


def _write_alter_client_quotas_response_entity_data_1(w, o):
    w(pack_compact_string(o.entity_type) + pack_compact_nullable_string(o.entity_name) + NO_TAGS)


def _write_alter_client_quotas_response_entry_data_1(w, o):
    w(pack_h(o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(w, o.entity, _write_alter_client_quotas_response_entity_data_1)
    w(NO_TAGS)


def _write_alter_client_quotas_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.entries, _write_alter_client_quotas_response_entry_data_1)
    w(NO_TAGS)


AlterClientQuotasResponse.readers = since(1, {
    0: _read_alter_client_quotas_response_0, 1: _read_alter_client_quotas_response_1
})
AlterClientQuotasResponse.writers = since(1, {
    0: _write_alter_client_quotas_response_0, 1: _write_alter_client_quotas_response_1
})


# -- 50: DescribeUserScramCredentials ----------------------------------------------------------


class DescribeUserScramCredentialsRequest(ApiMessage):
    """API key 50, the request, version 0."""

    class UserName(Message):
        name: str = ""

    users: Sequence[DescribeUserScramCredentialsRequest.UserName] | None = ()


def _read_describe_user_scram_credentials_request_user_name_0(b, p):
    name, p = read_compact_string(b, p)
    return DescribeUserScramCredentialsRequest.UserName(name), skip_tags(b, p)


def _read_describe_user_scram_credentials_request_0(b, p):
    users, p = read_compact_nullable_array(
        b, p, 2, _read_describe_user_scram_credentials_request_user_name_0
    )
    return DescribeUserScramCredentialsRequest(users), skip_tags(b, p)


def _write_describe_user_scram_credentials_request_user_name_0(w, o):
    w(pack_compact_string(o.name) + NO_TAGS)


def _write_describe_user_scram_credentials_request_0(w, o):
    write_compact_nullable_array(
        w, o.users, _write_describe_user_scram_credentials_request_user_name_0
    )
    w(NO_TAGS)


DescribeUserScramCredentialsRequest.readers = since(0, {
    0: _read_describe_user_scram_credentials_request_0
})
DescribeUserScramCredentialsRequest.writers = since(0, {
    0: _write_describe_user_scram_credentials_request_0
})


class DescribeUserScramCredentialsResponse(ApiMessage):
    """API key 50, the response, version 0."""

    class CredentialInfo(Message):
        mechanism: int = 0
        iterations: int = 0

    class DescribeUserScramCredentialsResult(Message):
        user: str = ""
        error_code: int = 0
        error_message: str | None = ""
        credential_infos: Sequence[DescribeUserScramCredentialsResponse.CredentialInfo] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: Sequence[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ()


def _read_describe_user_scram_credentials_response_credential_info_0(b, p):
    mechanism, iterations = unpack_bi(b, p)
    return DescribeUserScramCredentialsResponse.CredentialInfo(
        mechanism, iterations
    ), skip_tags(b, p + 5)


def _read_describe_user_scram_credentials_response_describe_user_scram_credentials_result_0(b, p):
    user, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    credential_infos, p = read_compact_array(
        b, p, 6, _read_describe_user_scram_credentials_response_credential_info_0
    )
    return DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(
        user, error_code, error_message, credential_infos
    ), skip_tags(b, p)


def _read_describe_user_scram_credentials_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    results, p = read_compact_array(
        b, p, 6,
        _read_describe_user_scram_credentials_response_describe_user_scram_credentials_result_0
    )
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms, error_code, error_message, results
    ), skip_tags(b, p)


def _write_describe_user_scram_credentials_response_credential_info_0(w, o):
    w(pack_bix(o.mechanism, o.iterations))


def _write_describe_user_scram_credentials_response_describe_user_scram_credentials_result_0(w, o):
    w(
        pack_compact_string(o.user) + pack_h(o.error_code) +
        pack_compact_nullable_string(o.error_message)
    )
    write_compact_array(
        w, o.credential_infos, _write_describe_user_scram_credentials_response_credential_info_0
    )
    w(NO_TAGS)


def _write_describe_user_scram_credentials_response_0(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(
        w, o.results,
        _write_describe_user_scram_credentials_response_describe_user_scram_credentials_result_0
    )
    w(NO_TAGS)


DescribeUserScramCredentialsResponse.readers = since(0, {
    0: _read_describe_user_scram_credentials_response_0
})
DescribeUserScramCredentialsResponse.writers = since(0, {
    0: _write_describe_user_scram_credentials_response_0
})


# -- 51: AlterUserScramCredentials -------------------------------------------------------------


class AlterUserScramCredentialsRequest(ApiMessage):
    """API key 51, the request, version 0."""

    class ScramCredentialDeletion(Message):
        name: str = ""
        mechanism: int = 0

    class ScramCredentialUpsertion(Message):
        name: str = ""
        mechanism: int = 0
        iterations: int = 0
        salt: bytes = b""
        salted_password: bytes = b""

    deletions: Sequence[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ()
    upsertions: Sequence[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ()


def _read_alter_user_scram_credentials_request_scram_credential_deletion_0(b, p):
    name, p = read_compact_string(b, p)
    (mechanism,) = unpack_b(b, p)
    return AlterUserScramCredentialsRequest.ScramCredentialDeletion(
        name, mechanism
    ), skip_tags(b, p + 1)


def _read_alter_user_scram_credentials_request_scram_credential_upsertion_0(b, p):
    name, p = read_compact_string(b, p)
    mechanism, iterations = unpack_bi(b, p)
    salt, p = read_compact_bytes(b, p + 5)
    salted_password, p = read_compact_bytes(b, p)
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name, mechanism, iterations, salt, salted_password
    ), skip_tags(b, p)


def _read_alter_user_scram_credentials_request_0(b, p):
    deletions, p = read_compact_array(
        b, p, 3, _read_alter_user_scram_credentials_request_scram_credential_deletion_0
    )
    upsertions, p = read_compact_array(
        b, p, 9, _read_alter_user_scram_credentials_request_scram_credential_upsertion_0
    )
    return AlterUserScramCredentialsRequest(deletions, upsertions), skip_tags(b, p)


def _write_alter_user_scram_credentials_request_scram_credential_deletion_0(w, o):
    w(pack_compact_string(o.name) + pack_bx(o.mechanism))


def _write_alter_user_scram_credentials_request_scram_credential_upsertion_0(w, o):
    w(
        pack_compact_string(o.name) + pack_bi(o.mechanism, o.iterations) +
        pack_compact_bytes(o.salt) + pack_compact_bytes(o.salted_password) + NO_TAGS
    )


def _write_alter_user_scram_credentials_request_0(w, o):
    write_compact_array(
        w, o.deletions, _write_alter_user_scram_credentials_request_scram_credential_deletion_0
    )
    write_compact_array(
        w, o.upsertions, _write_alter_user_scram_credentials_request_scram_credential_upsertion_0
    )
    w(NO_TAGS)


AlterUserScramCredentialsRequest.readers = since(0, {
    0: _read_alter_user_scram_credentials_request_0
})
AlterUserScramCredentialsRequest.writers = since(0, {
    0: _write_alter_user_scram_credentials_request_0
})


class AlterUserScramCredentialsResponse(ApiMessage):
    """API key 51, the response, version 0."""

    class AlterUserScramCredentialsResult(Message):
        user: str = ""
        error_code: int = 0
        error_message: str | None = ""

    throttle_time_ms: int = 0
    results: Sequence[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ()


def _read_alter_user_scram_credentials_response_alter_user_scram_credentials_result_0(b, p):
    user, p = read_compact_string(b, p)
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    return AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
        user, error_code, error_message
    ), skip_tags(b, p)


def _read_alter_user_scram_credentials_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    results, p = read_compact_array(
        b, p + 4, 5,
        _read_alter_user_scram_credentials_response_alter_user_scram_credentials_result_0
    )
    return AlterUserScramCredentialsResponse(throttle_time_ms, results), skip_tags(b, p)


def _write_alter_user_scram_credentials_response_alter_user_scram_credentials_result_0(w, o):
    w(
        pack_compact_string(o.user) + pack_h(o.error_code) +
        pack_compact_nullable_string(o.error_message) + NO_TAGS
    )


def _write_alter_user_scram_credentials_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.results,
        _write_alter_user_scram_credentials_response_alter_user_scram_credentials_result_0
    )
    w(NO_TAGS)


AlterUserScramCredentialsResponse.readers = since(0, {
    0: _read_alter_user_scram_credentials_response_0
})
AlterUserScramCredentialsResponse.writers = since(0, {
    0: _write_alter_user_scram_credentials_response_0
})


# -- 60: DescribeCluster -----------------------------------------------------------------------


class DescribeClusterRequest(ApiMessage):
    """API key 60, the request, versions 0-2."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # 1+
    include_fenced_brokers: bool = False  # 2+


def _read_describe_cluster_request_0(b, p):
    (include_cluster_authorized_operations,) = unpack_t(b, p)
    return DescribeClusterRequest(include_cluster_authorized_operations), skip_tags(b, p + 1)


def _read_describe_cluster_request_1(b, p):
    include_cluster_authorized_operations, endpoint_type = unpack_tb(b, p)
    return DescribeClusterRequest(
        include_cluster_authorized_operations, endpoint_type
    ), skip_tags(b, p + 2)


def _read_describe_cluster_request_2(b, p):
    include_cluster_authorized_operations, endpoint_type, include_fenced_brokers = unpack_tbt(b, p)
    return DescribeClusterRequest(
        include_cluster_authorized_operations, endpoint_type, include_fenced_brokers
    ), skip_tags(b, p + 3)


def _write_describe_cluster_request_0(w, o):
    w(pack_tx(o.include_cluster_authorized_operations))


def _write_describe_cluster_request_1(w, o):
    w(pack_tbx(o.include_cluster_authorized_operations, o.endpoint_type))


def _write_describe_cluster_request_2(w, o):
    w(pack_tbtx(o.include_cluster_authorized_operations, o.endpoint_type, o.include_fenced_brokers))


DescribeClusterRequest.readers = since(2, {
    0: _read_describe_cluster_request_0, 1: _read_describe_cluster_request_1, 2:
    _read_describe_cluster_request_2
})
DescribeClusterRequest.writers = since(2, {
    0: _write_describe_cluster_request_0, 1: _write_describe_cluster_request_1, 2:
    _write_describe_cluster_request_2
})


class DescribeClusterResponse(ApiMessage):
    """API key 60, the response, versions 0-2."""

    class DescribeClusterBroker(Message):
        broker_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None
        is_fenced: bool = False  # 2+

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1  # 1+
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[DescribeClusterResponse.DescribeClusterBroker] = ()
    cluster_authorized_operations: int = -2147483648


def _read_describe_cluster_response_describe_cluster_broker_0(b, p):
    (broker_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id, host, port, rack
    ), skip_tags(b, p)


def _read_describe_cluster_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    cluster_id, p = read_compact_string(b, p)
    (controller_id,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_describe_cluster_response_describe_cluster_broker_0
    )
    (cluster_authorized_operations,) = unpack_i(b, p)
    return DescribeClusterResponse(
        throttle_time_ms, error_code, error_message, 1, cluster_id, controller_id, brokers,
        cluster_authorized_operations
    ), skip_tags(b, p + 4)


def _read_describe_cluster_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    (endpoint_type,) = unpack_b(b, p)
    cluster_id, p = read_compact_string(b, p + 1)
    (controller_id,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 11, _read_describe_cluster_response_describe_cluster_broker_0
    )
    (cluster_authorized_operations,) = unpack_i(b, p)
    return DescribeClusterResponse(
        throttle_time_ms, error_code, error_message, endpoint_type, cluster_id, controller_id,
        brokers, cluster_authorized_operations
    ), skip_tags(b, p + 4)


def _read_describe_cluster_response_describe_cluster_broker_2(b, p):
    (broker_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    (is_fenced,) = unpack_t(b, p)
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id, host, port, rack, is_fenced
    ), skip_tags(b, p + 1)


def _read_describe_cluster_response_2(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    (endpoint_type,) = unpack_b(b, p)
    cluster_id, p = read_compact_string(b, p + 1)
    (controller_id,) = unpack_i(b, p)
    brokers, p = read_compact_array(
        b, p + 4, 12, _read_describe_cluster_response_describe_cluster_broker_2
    )
    (cluster_authorized_operations,) = unpack_i(b, p)
    return DescribeClusterResponse(
        throttle_time_ms, error_code, error_message, endpoint_type, cluster_id, controller_id,
        brokers, cluster_authorized_operations
    ), skip_tags(b, p + 4)


def _write_describe_cluster_response_describe_cluster_broker_0(w, o):
    w(
        pack_i(o.broker_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + NO_TAGS
    )


def _write_describe_cluster_response_0(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_string(o.cluster_id) + pack_i(o.controller_id)
    )
    write_compact_array(w, o.brokers, _write_describe_cluster_response_describe_cluster_broker_0)
    w(pack_ix(o.cluster_authorized_operations))


def _write_describe_cluster_response_1(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_b(o.endpoint_type) + pack_compact_string(o.cluster_id) + pack_i(o.controller_id)
    )
    write_compact_array(w, o.brokers, _write_describe_cluster_response_describe_cluster_broker_0)
    w(pack_ix(o.cluster_authorized_operations))


def _write_describe_cluster_response_describe_cluster_broker_2(w, o):
    w(
        pack_i(o.broker_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + pack_tx(o.is_fenced)
    )


def _write_describe_cluster_response_2(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_b(o.endpoint_type) + pack_compact_string(o.cluster_id) + pack_i(o.controller_id)
    )
    write_compact_array(w, o.brokers, _write_describe_cluster_response_describe_cluster_broker_2)
    w(pack_ix(o.cluster_authorized_operations))


DescribeClusterResponse.readers = since(2, {
    0: _read_describe_cluster_response_0, 1: _read_describe_cluster_response_1, 2:
    _read_describe_cluster_response_2
})
DescribeClusterResponse.writers = since(2, {
    0: _write_describe_cluster_response_0, 1: _write_describe_cluster_response_1, 2:
    _write_describe_cluster_response_2
})


# -- 61: DescribeProducers ---------------------------------------------------------------------


class DescribeProducersRequest(ApiMessage):
    """API key 61, the request, version 0."""

    class TopicRequest(Message):
        name: str = ""
        partition_indexes: Sequence[int] = ()

    topics: Sequence[DescribeProducersRequest.TopicRequest] = ()


def _read_describe_producers_request_topic_request_0(b, p):
    name, p = read_compact_string(b, p)
    partition_indexes, p = read_compact_numbers(b, p, "i")
    return DescribeProducersRequest.TopicRequest(name, partition_indexes), skip_tags(b, p)


def _read_describe_producers_request_0(b, p):
    topics, p = read_compact_array(b, p, 3, _read_describe_producers_request_topic_request_0)
    return DescribeProducersRequest(topics), skip_tags(b, p)


def _write_describe_producers_request_topic_request_0(w, o):
    w(pack_compact_string(o.name) + pack_compact_numbers(o.partition_indexes, "i") + NO_TAGS)


def _write_describe_producers_request_0(w, o):
    write_compact_array(w, o.topics, _write_describe_producers_request_topic_request_0)
    w(NO_TAGS)


DescribeProducersRequest.readers = since(0, {0: _read_describe_producers_request_0})
DescribeProducersRequest.writers = since(0, {0: _write_describe_producers_request_0})


class DescribeProducersResponse(ApiMessage):
    """API key 61, the response, version 0."""

    class ProducerState(Message):
        producer_id: int = 0
        producer_epoch: int = 0
        last_sequence: int = -1
        last_timestamp: int = -1
        coordinator_epoch: int = 0
        current_txn_start_offset: int = -1

    class PartitionResponse(Message):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        active_producers: Sequence[DescribeProducersResponse.ProducerState] = ()

    class TopicResponse(Message):
        name: str = ""
        partitions: Sequence[DescribeProducersResponse.PartitionResponse] = ()

    throttle_time_ms: int = 0
    topics: Sequence[DescribeProducersResponse.TopicResponse] = ()


def _read_describe_producers_response_producer_state_0(b, p):
    (
        producer_id, producer_epoch, last_sequence, last_timestamp, coordinator_epoch,
        current_txn_start_offset
    ) = unpack_qiiqiq(b, p)
    return DescribeProducersResponse.ProducerState(
        producer_id, producer_epoch, last_sequence, last_timestamp, coordinator_epoch,
        current_txn_start_offset
    ), skip_tags(b, p + 36)


def _read_describe_producers_response_partition_response_0(b, p):
    partition_index, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    active_producers, p = read_compact_array(
        b, p, 37, _read_describe_producers_response_producer_state_0
    )
    return DescribeProducersResponse.PartitionResponse(
        partition_index, error_code, error_message, active_producers
    ), skip_tags(b, p)


def _read_describe_producers_response_topic_response_0(b, p):
    name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 9, _read_describe_producers_response_partition_response_0
    )
    return DescribeProducersResponse.TopicResponse(name, partitions), skip_tags(b, p)


def _read_describe_producers_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(b, p + 4, 3, _read_describe_producers_response_topic_response_0)
    return DescribeProducersResponse(throttle_time_ms, topics), skip_tags(b, p)


def _write_describe_producers_response_producer_state_0(w, o):
    w(
        pack_qiiqiqx(o.producer_id, o.producer_epoch, o.last_sequence, o.last_timestamp,
        o.coordinator_epoch, o.current_txn_start_offset)
    )


def _write_describe_producers_response_partition_response_0(w, o):
    w(pack_ih(o.partition_index, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(w, o.active_producers, _write_describe_producers_response_producer_state_0)
    w(NO_TAGS)


def _write_describe_producers_response_topic_response_0(w, o):
    w(pack_compact_string(o.name))
    write_compact_array(w, o.partitions, _write_describe_producers_response_partition_response_0)
    w(NO_TAGS)


def _write_describe_producers_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.topics, _write_describe_producers_response_topic_response_0)
    w(NO_TAGS)


DescribeProducersResponse.readers = since(0, {0: _read_describe_producers_response_0})
DescribeProducersResponse.writers = since(0, {0: _write_describe_producers_response_0})


# -- 65: DescribeTransactions ------------------------------------------------------------------


class DescribeTransactionsRequest(ApiMessage):
    """API key 65, the request, version 0."""

    transactional_ids: Sequence[str] = ()


def _read_describe_transactions_request_0(b, p):
    transactional_ids, p = read_compact_array(b, p, 1, read_compact_string)
    return DescribeTransactionsRequest(transactional_ids), skip_tags(b, p)


def _write_describe_transactions_request_0(w, o):
    w(pack_compact_array(o.transactional_ids, pack_compact_string) + NO_TAGS)


DescribeTransactionsRequest.readers = since(0, {0: _read_describe_transactions_request_0})
DescribeTransactionsRequest.writers = since(0, {0: _write_describe_transactions_request_0})


class DescribeTransactionsResponse(ApiMessage):
    """API key 65, the response, version 0."""

    class TopicData(Message):
        topic: str = ""
        partitions: Sequence[int] = ()

    class TransactionState(Message):
        error_code: int = 0
        transactional_id: str = ""
        transaction_state: str = ""
        transaction_timeout_ms: int = 0
        transaction_start_time_ms: int = 0
        producer_id: int = 0
        producer_epoch: int = 0
        topics: Sequence[DescribeTransactionsResponse.TopicData] = ()

    throttle_time_ms: int = 0
    transaction_states: Sequence[DescribeTransactionsResponse.TransactionState] = ()


def _read_describe_transactions_response_topic_data_0(b, p):
    topic, p = read_compact_string(b, p)
    partitions, p = read_compact_numbers(b, p, "i")
    return DescribeTransactionsResponse.TopicData(topic, partitions), skip_tags(b, p)


def _read_describe_transactions_response_transaction_state_0(b, p):
    (error_code,) = unpack_h(b, p)
    transactional_id, p = read_compact_string(b, p + 2)
    transaction_state, p = read_compact_string(b, p)
    (
        transaction_timeout_ms, transaction_start_time_ms, producer_id, producer_epoch
    ) = unpack_iqqh(b, p)
    topics, p = read_compact_array(b, p + 22, 3, _read_describe_transactions_response_topic_data_0)
    return DescribeTransactionsResponse.TransactionState(
        error_code, transactional_id, transaction_state, transaction_timeout_ms,
        transaction_start_time_ms, producer_id, producer_epoch, topics
    ), skip_tags(b, p)


def _read_describe_transactions_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    transaction_states, p = read_compact_array(
        b, p + 4, 28, _read_describe_transactions_response_transaction_state_0
    )
    return DescribeTransactionsResponse(throttle_time_ms, transaction_states), skip_tags(b, p)


def _write_describe_transactions_response_topic_data_0(w, o):
    w(pack_compact_string(o.topic) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_describe_transactions_response_transaction_state_0(w, o):
    w(
        pack_h(o.error_code) + pack_compact_string(o.transactional_id) +
        pack_compact_string(o.transaction_state) + pack_iqqh(o.transaction_timeout_ms,
        o.transaction_start_time_ms, o.producer_id, o.producer_epoch)
    )
    write_compact_array(w, o.topics, _write_describe_transactions_response_topic_data_0)
    w(NO_TAGS)


def _write_describe_transactions_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.transaction_states, _write_describe_transactions_response_transaction_state_0
    )
    w(NO_TAGS)


DescribeTransactionsResponse.readers = since(0, {0: _read_describe_transactions_response_0})
DescribeTransactionsResponse.writers = since(0, {0: _write_describe_transactions_response_0})


# -- 66: ListTransactions ----------------------------------------------------------------------


class ListTransactionsRequest(ApiMessage):
    """API key 66, the request, versions 0-2."""

    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[int] = ()
    duration_filter: int = -1  # 1+
    transactional_id_pattern: str | None = None  # 2+


def _read_list_transactions_request_0(b, p):
    state_filters, p = read_compact_array(b, p, 1, read_compact_string)
    producer_id_filters, p = read_compact_numbers(b, p, "q")
    return ListTransactionsRequest(state_filters, producer_id_filters), skip_tags(b, p)


def _read_list_transactions_request_1(b, p):
    state_filters, p = read_compact_array(b, p, 1, read_compact_string)
    producer_id_filters, p = read_compact_numbers(b, p, "q")
    (duration_filter,) = unpack_q(b, p)
    return ListTransactionsRequest(
        state_filters, producer_id_filters, duration_filter
    ), skip_tags(b, p + 8)


def _read_list_transactions_request_2(b, p):
    state_filters, p = read_compact_array(b, p, 1, read_compact_string)
    producer_id_filters, p = read_compact_numbers(b, p, "q")
    (duration_filter,) = unpack_q(b, p)
    transactional_id_pattern, p = read_compact_nullable_string(b, p + 8)
    return ListTransactionsRequest(
        state_filters, producer_id_filters, duration_filter, transactional_id_pattern
    ), skip_tags(b, p)


def _write_list_transactions_request_0(w, o):
    w(
        pack_compact_array(o.state_filters, pack_compact_string) +
        pack_compact_numbers(o.producer_id_filters, "q") + NO_TAGS
    )


def _write_list_transactions_request_1(w, o):
    w(
        pack_compact_array(o.state_filters, pack_compact_string) +
        pack_compact_numbers(o.producer_id_filters, "q") + pack_qx(o.duration_filter)
    )


def _write_list_transactions_request_2(w, o):
    w(
        pack_compact_array(o.state_filters, pack_compact_string) +
        pack_compact_numbers(o.producer_id_filters, "q") + pack_q(o.duration_filter) +
        pack_compact_nullable_string(o.transactional_id_pattern) + NO_TAGS
    )


ListTransactionsRequest.readers = since(2, {
    0: _read_list_transactions_request_0, 1: _read_list_transactions_request_1, 2:
    _read_list_transactions_request_2
})
ListTransactionsRequest.writers = since(2, {
    0: _write_list_transactions_request_0, 1: _write_list_transactions_request_1, 2:
    _write_list_transactions_request_2
})


class ListTransactionsResponse(ApiMessage):
    """API key 66, the response, versions 0-2."""

    class TransactionState(Message):
        transactional_id: str = ""
        producer_id: int = 0
        transaction_state: str = ""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[ListTransactionsResponse.TransactionState] = ()


def _read_list_transactions_response_transaction_state_0(b, p):
    transactional_id, p = read_compact_string(b, p)
    (producer_id,) = unpack_q(b, p)
    transaction_state, p = read_compact_string(b, p + 8)
    return ListTransactionsResponse.TransactionState(
        transactional_id, producer_id, transaction_state
    ), skip_tags(b, p)


def _read_list_transactions_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    unknown_state_filters, p = read_compact_array(b, p + 6, 1, read_compact_string)
    transaction_states, p = read_compact_array(
        b, p, 11, _read_list_transactions_response_transaction_state_0
    )
    return ListTransactionsResponse(
        throttle_time_ms, error_code, unknown_state_filters, transaction_states
    ), skip_tags(b, p)


def _write_list_transactions_response_transaction_state_0(w, o):
    w(
        pack_compact_string(o.transactional_id) + pack_q(o.producer_id) +
        pack_compact_string(o.transaction_state) + NO_TAGS
    )


def _write_list_transactions_response_0(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_array(o.unknown_state_filters,
        pack_compact_string)
    )
    write_compact_array(
        w, o.transaction_states, _write_list_transactions_response_transaction_state_0
    )
    w(NO_TAGS)


ListTransactionsResponse.readers = since(2, {0: _read_list_transactions_response_0})
ListTransactionsResponse.writers = since(2, {0: _write_list_transactions_response_0})


# -- 68: ConsumerGroupHeartbeat ----------------------------------------------------------------


class ConsumerGroupHeartbeatRequest(ApiMessage):
    """API key 68, the request, versions 0-1."""

    class TopicPartitions(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[int] = ()

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None  # 1+
    server_assignor: str | None = None
    topic_partitions: Sequence[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None


def _read_consumer_group_heartbeat_request_topic_partitions_0(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_numbers(b, p + 16, "i")
    return ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, partitions), skip_tags(b, p)


def _read_consumer_group_heartbeat_request_0(b, p):
    group_id, p = read_compact_string(b, p)
    member_id, p = read_compact_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    instance_id, p = read_compact_nullable_string(b, p + 4)
    rack_id, p = read_compact_nullable_string(b, p)
    (rebalance_timeout_ms,) = unpack_i(b, p)
    subscribed_topic_names, p = read_compact_nullable_array(b, p + 4, 1, read_compact_string)
    server_assignor, p = read_compact_nullable_string(b, p)
    topic_partitions, p = read_compact_nullable_array(
        b, p, 18, _read_consumer_group_heartbeat_request_topic_partitions_0
    )
    return ConsumerGroupHeartbeatRequest(
        group_id, member_id, member_epoch, instance_id, rack_id, rebalance_timeout_ms,
        subscribed_topic_names, None, server_assignor, topic_partitions
    ), skip_tags(b, p)


def _read_consumer_group_heartbeat_request_1(b, p):
    group_id, p = read_compact_string(b, p)
    member_id, p = read_compact_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    instance_id, p = read_compact_nullable_string(b, p + 4)
    rack_id, p = read_compact_nullable_string(b, p)
    (rebalance_timeout_ms,) = unpack_i(b, p)
    subscribed_topic_names, p = read_compact_nullable_array(b, p + 4, 1, read_compact_string)
    subscribed_topic_regex, p = read_compact_nullable_string(b, p)
    server_assignor, p = read_compact_nullable_string(b, p)
    topic_partitions, p = read_compact_nullable_array(
        b, p, 18, _read_consumer_group_heartbeat_request_topic_partitions_0
    )
    return ConsumerGroupHeartbeatRequest(
        group_id, member_id, member_epoch, instance_id, rack_id, rebalance_timeout_ms,
        subscribed_topic_names, subscribed_topic_regex, server_assignor, topic_partitions
    ), skip_tags(b, p)


def _write_consumer_group_heartbeat_request_topic_partitions_0(w, o):
    w(pack_u(o.topic_id.bytes) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_consumer_group_heartbeat_request_0(w, o):
    w(
        pack_compact_string(o.group_id) + pack_compact_string(o.member_id) + pack_i(o.member_epoch)
        + pack_compact_nullable_string(o.instance_id) + pack_compact_nullable_string(o.rack_id) +
        pack_i(o.rebalance_timeout_ms) + pack_compact_nullable_array(o.subscribed_topic_names,
        pack_compact_string) + pack_compact_nullable_string(o.server_assignor)
    )
    write_compact_nullable_array(
        w, o.topic_partitions, _write_consumer_group_heartbeat_request_topic_partitions_0
    )
    w(NO_TAGS)


def _write_consumer_group_heartbeat_request_1(w, o):
    w(
        pack_compact_string(o.group_id) + pack_compact_string(o.member_id) + pack_i(o.member_epoch)
        + pack_compact_nullable_string(o.instance_id) + pack_compact_nullable_string(o.rack_id) +
        pack_i(o.rebalance_timeout_ms) + pack_compact_nullable_array(o.subscribed_topic_names,
        pack_compact_string) + pack_compact_nullable_string(o.subscribed_topic_regex) +
        pack_compact_nullable_string(o.server_assignor)
    )
    write_compact_nullable_array(
        w, o.topic_partitions, _write_consumer_group_heartbeat_request_topic_partitions_0
    )
    w(NO_TAGS)


ConsumerGroupHeartbeatRequest.readers = since(1, {
    0: _read_consumer_group_heartbeat_request_0, 1: _read_consumer_group_heartbeat_request_1
})
ConsumerGroupHeartbeatRequest.writers = since(1, {
    0: _write_consumer_group_heartbeat_request_0, 1: _write_consumer_group_heartbeat_request_1
})


class ConsumerGroupHeartbeatResponse(ApiMessage):
    """API key 68, the response, versions 0-1."""

    class TopicPartitions(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[int] = ()

    class Assignment(Message):
        topic_partitions: Sequence[ConsumerGroupHeartbeatResponse.TopicPartitions] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None


def _read_consumer_group_heartbeat_response_topic_partitions_0(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_numbers(b, p + 16, "i")
    return ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id, partitions), skip_tags(b, p)


def _read_consumer_group_heartbeat_response_assignment_0(b, p):
    topic_partitions, p = read_compact_array(
        b, p, 18, _read_consumer_group_heartbeat_response_topic_partitions_0
    )
    return ConsumerGroupHeartbeatResponse.Assignment(topic_partitions), skip_tags(b, p)


def _read_consumer_group_heartbeat_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    member_id, p = read_compact_nullable_string(b, p)
    member_epoch, heartbeat_interval_ms = unpack_ii(b, p)
    assignment, p = read_nullable_struct(
        b, p + 8, _read_consumer_group_heartbeat_response_assignment_0
    )
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms, error_code, error_message, member_id, member_epoch, heartbeat_interval_ms,
        assignment
    ), skip_tags(b, p)


def _write_consumer_group_heartbeat_response_topic_partitions_0(w, o):
    w(pack_u(o.topic_id.bytes) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_consumer_group_heartbeat_response_assignment_0(w, o):
    write_compact_array(
        w, o.topic_partitions, _write_consumer_group_heartbeat_response_topic_partitions_0
    )
    w(NO_TAGS)


def _write_consumer_group_heartbeat_response_0(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_nullable_string(o.member_id) + pack_ii(o.member_epoch, o.heartbeat_interval_ms)
    )
    write_nullable_struct(w, o.assignment, _write_consumer_group_heartbeat_response_assignment_0)
    w(NO_TAGS)


ConsumerGroupHeartbeatResponse.readers = since(1, {0: _read_consumer_group_heartbeat_response_0})
ConsumerGroupHeartbeatResponse.writers = since(1, {0: _write_consumer_group_heartbeat_response_0})


# -- 69: ConsumerGroupDescribe -----------------------------------------------------------------


class ConsumerGroupDescribeRequest(ApiMessage):
    """API key 69, the request, versions 0-1."""

    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


def _read_consumer_group_describe_request_0(b, p):
    group_ids, p = read_compact_array(b, p, 1, read_compact_string)
    (include_authorized_operations,) = unpack_t(b, p)
    return ConsumerGroupDescribeRequest(
        group_ids, include_authorized_operations
    ), skip_tags(b, p + 1)


def _write_consumer_group_describe_request_0(w, o):
    w(
        pack_compact_array(o.group_ids, pack_compact_string) +
        pack_tx(o.include_authorized_operations)
    )


ConsumerGroupDescribeRequest.readers = since(1, {0: _read_consumer_group_describe_request_0})
ConsumerGroupDescribeRequest.writers = since(1, {0: _write_consumer_group_describe_request_0})


class ConsumerGroupDescribeResponse(ApiMessage):
    """API key 69, the response, versions 0-1."""

    class TopicPartitions(Message):
        topic_id: UUID = ZERO_UUID
        topic_name: str = ""
        partitions: Sequence[int] = ()

    class Assignment(Message):
        topic_partitions: Sequence[ConsumerGroupDescribeResponse.TopicPartitions] = ()

    class Member(Message):
        member_id: str = ""
        instance_id: str | None = None
        rack_id: str | None = None
        member_epoch: int = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: Sequence[str] = ()
        subscribed_topic_regex: str | None = None
        assignment: ConsumerGroupDescribeResponse.Assignment = field(
            default_factory=lambda: ConsumerGroupDescribeResponse.Assignment()
        )
        target_assignment: ConsumerGroupDescribeResponse.Assignment = field(
            default_factory=lambda: ConsumerGroupDescribeResponse.Assignment()
        )
        member_type: int = -1  # 1+

    class DescribedGroup(Message):
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: Sequence[ConsumerGroupDescribeResponse.Member] = ()
        authorized_operations: int = -2147483648

    throttle_time_ms: int = 0
    groups: Sequence[ConsumerGroupDescribeResponse.DescribedGroup] = ()


def _read_consumer_group_describe_response_topic_partitions_0(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    topic_name, p = read_compact_string(b, p + 16)
    partitions, p = read_compact_numbers(b, p, "i")
    return ConsumerGroupDescribeResponse.TopicPartitions(
        topic_id, topic_name, partitions
    ), skip_tags(b, p)


def _read_consumer_group_describe_response_assignment_0(b, p):
    topic_partitions, p = read_compact_array(
        b, p, 19, _read_consumer_group_describe_response_topic_partitions_0
    )
    return ConsumerGroupDescribeResponse.Assignment(topic_partitions), skip_tags(b, p)


def _read_consumer_group_describe_response_member_0(b, p):
    member_id, p = read_compact_string(b, p)
    instance_id, p = read_compact_nullable_string(b, p)
    rack_id, p = read_compact_nullable_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    client_id, p = read_compact_string(b, p + 4)
    client_host, p = read_compact_string(b, p)
    subscribed_topic_names, p = read_compact_array(b, p, 1, read_compact_string)
    subscribed_topic_regex, p = read_compact_nullable_string(b, p)
    assignment, p = _read_consumer_group_describe_response_assignment_0(b, p)
    target_assignment, p = _read_consumer_group_describe_response_assignment_0(b, p)
    return ConsumerGroupDescribeResponse.Member(
        member_id, instance_id, rack_id, member_epoch, client_id, client_host,
        subscribed_topic_names, subscribed_topic_regex, assignment, target_assignment
    ), skip_tags(b, p)


def _read_consumer_group_describe_response_described_group_0(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    group_id, p = read_compact_string(b, p)
    group_state, p = read_compact_string(b, p)
    group_epoch, assignment_epoch = unpack_ii(b, p)
    assignor_name, p = read_compact_string(b, p + 8)
    members, p = read_compact_array(b, p, 16, _read_consumer_group_describe_response_member_0)
    (authorized_operations,) = unpack_i(b, p)
    return ConsumerGroupDescribeResponse.DescribedGroup(
        error_code, error_message, group_id, group_state, group_epoch, assignment_epoch,
        assignor_name, members, authorized_operations
    ), skip_tags(b, p + 4)


def _read_consumer_group_describe_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(
        b, p + 4, 20, _read_consumer_group_describe_response_described_group_0
    )
    return ConsumerGroupDescribeResponse(throttle_time_ms, groups), skip_tags(b, p)


def _read_consumer_group_describe_response_member_1(b, p):
    member_id, p = read_compact_string(b, p)
    instance_id, p = read_compact_nullable_string(b, p)
    rack_id, p = read_compact_nullable_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    client_id, p = read_compact_string(b, p + 4)
    client_host, p = read_compact_string(b, p)
    subscribed_topic_names, p = read_compact_array(b, p, 1, read_compact_string)
    subscribed_topic_regex, p = read_compact_nullable_string(b, p)
    assignment, p = _read_consumer_group_describe_response_assignment_0(b, p)
    target_assignment, p = _read_consumer_group_describe_response_assignment_0(b, p)
    (member_type,) = unpack_b(b, p)
    return ConsumerGroupDescribeResponse.Member(
        member_id, instance_id, rack_id, member_epoch, client_id, client_host,
        subscribed_topic_names, subscribed_topic_regex, assignment, target_assignment, member_type
    ), skip_tags(b, p + 1)


def _read_consumer_group_describe_response_described_group_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    group_id, p = read_compact_string(b, p)
    group_state, p = read_compact_string(b, p)
    group_epoch, assignment_epoch = unpack_ii(b, p)
    assignor_name, p = read_compact_string(b, p + 8)
    members, p = read_compact_array(b, p, 17, _read_consumer_group_describe_response_member_1)
    (authorized_operations,) = unpack_i(b, p)
    return ConsumerGroupDescribeResponse.DescribedGroup(
        error_code, error_message, group_id, group_state, group_epoch, assignment_epoch,
        assignor_name, members, authorized_operations
    ), skip_tags(b, p + 4)


def _read_consumer_group_describe_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(
        b, p + 4, 20, _read_consumer_group_describe_response_described_group_1
    )
    return ConsumerGroupDescribeResponse(throttle_time_ms, groups), skip_tags(b, p)


def _write_consumer_group_describe_response_topic_partitions_0(w, o):
    w(
        pack_u(o.topic_id.bytes) + pack_compact_string(o.topic_name) +
        pack_compact_numbers(o.partitions, "i") + NO_TAGS
    )


def _write_consumer_group_describe_response_assignment_0(w, o):
    write_compact_array(
        w, o.topic_partitions, _write_consumer_group_describe_response_topic_partitions_0
    )
    w(NO_TAGS)


def _write_consumer_group_describe_response_member_0(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.instance_id) +
        pack_compact_nullable_string(o.rack_id) + pack_i(o.member_epoch) +
        pack_compact_string(o.client_id) + pack_compact_string(o.client_host) +
        pack_compact_array(o.subscribed_topic_names, pack_compact_string) +
        pack_compact_nullable_string(o.subscribed_topic_regex)
    )
    _write_consumer_group_describe_response_assignment_0(w, o.assignment)
    _write_consumer_group_describe_response_assignment_0(w, o.target_assignment)
    w(NO_TAGS)


def _write_consumer_group_describe_response_described_group_0(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_string(o.group_id) + pack_compact_string(o.group_state) +
        pack_ii(o.group_epoch, o.assignment_epoch) + pack_compact_string(o.assignor_name)
    )
    write_compact_array(w, o.members, _write_consumer_group_describe_response_member_0)
    w(pack_ix(o.authorized_operations))


def _write_consumer_group_describe_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.groups, _write_consumer_group_describe_response_described_group_0)
    w(NO_TAGS)


def _write_consumer_group_describe_response_member_1(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.instance_id) +
        pack_compact_nullable_string(o.rack_id) + pack_i(o.member_epoch) +
        pack_compact_string(o.client_id) + pack_compact_string(o.client_host) +
        pack_compact_array(o.subscribed_topic_names, pack_compact_string) +
        pack_compact_nullable_string(o.subscribed_topic_regex)
    )
    _write_consumer_group_describe_response_assignment_0(w, o.assignment)
    _write_consumer_group_describe_response_assignment_0(w, o.target_assignment)
    w(pack_bx(o.member_type))


def _write_consumer_group_describe_response_described_group_1(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_string(o.group_id) + pack_compact_string(o.group_state) +
        pack_ii(o.group_epoch, o.assignment_epoch) + pack_compact_string(o.assignor_name)
    )
    write_compact_array(w, o.members, _write_consumer_group_describe_response_member_1)
    w(pack_ix(o.authorized_operations))


def _write_consumer_group_describe_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.groups, _write_consumer_group_describe_response_described_group_1)
    w(NO_TAGS)


ConsumerGroupDescribeResponse.readers = since(1, {
    0: _read_consumer_group_describe_response_0, 1: _read_consumer_group_describe_response_1
})
ConsumerGroupDescribeResponse.writers = since(1, {
    0: _write_consumer_group_describe_response_0, 1: _write_consumer_group_describe_response_1
})


# -- 71: GetTelemetrySubscriptions -------------------------------------------------------------


class GetTelemetrySubscriptionsRequest(ApiMessage):
    """API key 71, the request, version 0."""

    client_instance_id: UUID = ZERO_UUID


def _read_get_telemetry_subscriptions_request_0(b, p):
    (client_instance_id,) = unpack_u(b, p)
    client_instance_id = uuid_of(client_instance_id)
    return GetTelemetrySubscriptionsRequest(client_instance_id), skip_tags(b, p + 16)


def _write_get_telemetry_subscriptions_request_0(w, o):
    w(pack_ux(o.client_instance_id.bytes))


GetTelemetrySubscriptionsRequest.readers = since(0, {
    0: _read_get_telemetry_subscriptions_request_0
})
GetTelemetrySubscriptionsRequest.writers = since(0, {
    0: _write_get_telemetry_subscriptions_request_0
})


class GetTelemetrySubscriptionsResponse(ApiMessage):
    """API key 71, the response, version 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: Sequence[int] = ()
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: Sequence[str] = ()


def _read_get_telemetry_subscriptions_response_0(b, p):
    throttle_time_ms, error_code, client_instance_id, subscription_id = unpack_ihui(b, p)
    client_instance_id = uuid_of(client_instance_id)
    accepted_compression_types, p = read_compact_numbers(b, p + 26, "b")
    push_interval_ms, telemetry_max_bytes, delta_temporality = unpack_iit(b, p)
    requested_metrics, p = read_compact_array(b, p + 9, 1, read_compact_string)
    return GetTelemetrySubscriptionsResponse(
        throttle_time_ms, error_code, client_instance_id, subscription_id,
        accepted_compression_types, push_interval_ms, telemetry_max_bytes, delta_temporality,
        requested_metrics
    ), skip_tags(b, p)


def _write_get_telemetry_subscriptions_response_0(w, o):
    w(
        pack_ihui(o.throttle_time_ms, o.error_code, o.client_instance_id.bytes, o.subscription_id) +
        pack_compact_numbers(o.accepted_compression_types, "b") + pack_iit(o.push_interval_ms,
        o.telemetry_max_bytes, o.delta_temporality) + pack_compact_array(o.requested_metrics,
        pack_compact_string) + NO_TAGS
    )


GetTelemetrySubscriptionsResponse.readers = since(0, {
    0: _read_get_telemetry_subscriptions_response_0
})
GetTelemetrySubscriptionsResponse.writers = since(0, {
    0: _write_get_telemetry_subscriptions_response_0
})


# -- 74: ListConfigResources -------------------------------------------------------------------


class ListConfigResourcesRequest(ApiMessage):
    """API key 74, the request, versions 0-1."""

    resource_types: Sequence[int] = ()  # 1+


def _read_list_config_resources_request_0(b, p):
    return ListConfigResourcesRequest(), skip_tags(b, p)


def _read_list_config_resources_request_1(b, p):
    resource_types, p = read_compact_numbers(b, p, "b")
    return ListConfigResourcesRequest(resource_types), skip_tags(b, p)


def _write_list_config_resources_request_0(w, o):
    w(NO_TAGS)


def _write_list_config_resources_request_1(w, o):
    w(pack_compact_numbers(o.resource_types, "b") + NO_TAGS)


ListConfigResourcesRequest.readers = since(1, {
    0: _read_list_config_resources_request_0, 1: _read_list_config_resources_request_1
})
ListConfigResourcesRequest.writers = since(1, {
    0: _write_list_config_resources_request_0, 1: _write_list_config_resources_request_1
})


class ListConfigResourcesResponse(ApiMessage):
    """API key 74, the response, versions 0-1."""

    class ConfigResource(Message):
        resource_name: str = ""
        resource_type: int = 16  # 1+

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: Sequence[ListConfigResourcesResponse.ConfigResource] = ()


def _read_list_config_resources_response_config_resource_0(b, p):
    resource_name, p = read_compact_string(b, p)
    return ListConfigResourcesResponse.ConfigResource(resource_name), skip_tags(b, p)


def _read_list_config_resources_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    config_resources, p = read_compact_array(
        b, p + 6, 2, _read_list_config_resources_response_config_resource_0
    )
    return ListConfigResourcesResponse(
        throttle_time_ms, error_code, config_resources
    ), skip_tags(b, p)


def _read_list_config_resources_response_config_resource_1(b, p):
    resource_name, p = read_compact_string(b, p)
    (resource_type,) = unpack_b(b, p)
    return ListConfigResourcesResponse.ConfigResource(
        resource_name, resource_type
    ), skip_tags(b, p + 1)


def _read_list_config_resources_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    config_resources, p = read_compact_array(
        b, p + 6, 3, _read_list_config_resources_response_config_resource_1
    )
    return ListConfigResourcesResponse(
        throttle_time_ms, error_code, config_resources
    ), skip_tags(b, p)


def _write_list_config_resources_response_config_resource_0(w, o):
    w(pack_compact_string(o.resource_name) + NO_TAGS)


def _write_list_config_resources_response_0(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(
        w, o.config_resources, _write_list_config_resources_response_config_resource_0
    )
    w(NO_TAGS)


def _write_list_config_resources_response_config_resource_1(w, o):
    w(pack_compact_string(o.resource_name) + pack_bx(o.resource_type))


def _write_list_config_resources_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code))
    write_compact_array(
        w, o.config_resources, _write_list_config_resources_response_config_resource_1
    )
    w(NO_TAGS)


ListConfigResourcesResponse.readers = since(1, {
    0: _read_list_config_resources_response_0, 1: _read_list_config_resources_response_1
})
ListConfigResourcesResponse.writers = since(1, {
    0: _write_list_config_resources_response_0, 1: _write_list_config_resources_response_1
})


# -- 75: DescribeTopicPartitions ---------------------------------------------------------------


class DescribeTopicPartitionsRequest(ApiMessage):
    """API key 75, the request, version 0."""

    class TopicRequest(Message):
        name: str = ""

    class Cursor(Message):
        topic_name: str = ""
        partition_index: int = 0

    topics: Sequence[DescribeTopicPartitionsRequest.TopicRequest] = ()
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequest.Cursor | None = None


def _read_describe_topic_partitions_request_topic_request_0(b, p):
    name, p = read_compact_string(b, p)
    return DescribeTopicPartitionsRequest.TopicRequest(name), skip_tags(b, p)


def _read_describe_topic_partitions_request_cursor_0(b, p):
    topic_name, p = read_compact_string(b, p)
    (partition_index,) = unpack_i(b, p)
    return DescribeTopicPartitionsRequest.Cursor(topic_name, partition_index), skip_tags(b, p + 4)


def _read_describe_topic_partitions_request_0(b, p):
    topics, p = read_compact_array(b, p, 2, _read_describe_topic_partitions_request_topic_request_0)
    (response_partition_limit,) = unpack_i(b, p)
    cursor, p = read_nullable_struct(b, p + 4, _read_describe_topic_partitions_request_cursor_0)
    return DescribeTopicPartitionsRequest(topics, response_partition_limit, cursor), skip_tags(b, p)


def _write_describe_topic_partitions_request_topic_request_0(w, o):
    w(pack_compact_string(o.name) + NO_TAGS)


def _write_describe_topic_partitions_request_cursor_0(w, o):
    w(pack_compact_string(o.topic_name) + pack_ix(o.partition_index))


def _write_describe_topic_partitions_request_0(w, o):
    write_compact_array(w, o.topics, _write_describe_topic_partitions_request_topic_request_0)
    w(pack_i(o.response_partition_limit))
    write_nullable_struct(w, o.cursor, _write_describe_topic_partitions_request_cursor_0)
    w(NO_TAGS)


DescribeTopicPartitionsRequest.readers = since(0, {0: _read_describe_topic_partitions_request_0})
DescribeTopicPartitionsRequest.writers = since(0, {0: _write_describe_topic_partitions_request_0})


class DescribeTopicPartitionsResponse(ApiMessage):
    """API key 75, the response, version 0."""

    class DescribeTopicPartitionsResponsePartition(Message):
        error_code: int = 0
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = -1
        replica_nodes: Sequence[int] = ()
        isr_nodes: Sequence[int] = ()
        eligible_leader_replicas: Sequence[int] | None = None
        last_known_elr: Sequence[int] | None = None
        offline_replicas: Sequence[int] = ()

    class DescribeTopicPartitionsResponseTopic(Message):
        error_code: int = 0
        name: str | None = ""
        topic_id: UUID = ZERO_UUID
        is_internal: bool = False
        partitions: Sequence[
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
        ] = ()
        topic_authorized_operations: int = -2147483648

    class Cursor(Message):
        topic_name: str = ""
        partition_index: int = 0

    throttle_time_ms: int = 0
    topics: Sequence[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None


def _read_describe_topic_partitions_response_describe_topic_partitions_response_partition_0(b, p):
    error_code, partition_index, leader_id, leader_epoch = unpack_hiii(b, p)
    replica_nodes, p = read_compact_numbers(b, p + 14, "i")
    isr_nodes, p = read_compact_numbers(b, p, "i")
    eligible_leader_replicas, p = read_compact_nullable_numbers(b, p, "i")
    last_known_elr, p = read_compact_nullable_numbers(b, p, "i")
    offline_replicas, p = read_compact_numbers(b, p, "i")
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        error_code, partition_index, leader_id, leader_epoch, replica_nodes, isr_nodes,
        eligible_leader_replicas, last_known_elr, offline_replicas
    ), skip_tags(b, p)


def _read_describe_topic_partitions_response_describe_topic_partitions_response_topic_0(b, p):
    (error_code,) = unpack_h(b, p)
    name, p = read_compact_nullable_string(b, p + 2)
    topic_id, is_internal = unpack_ut(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 17, 20,
        _read_describe_topic_partitions_response_describe_topic_partitions_response_partition_0
    )
    (topic_authorized_operations,) = unpack_i(b, p)
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        error_code, name, topic_id, is_internal, partitions, topic_authorized_operations
    ), skip_tags(b, p + 4)


def _read_describe_topic_partitions_response_cursor_0(b, p):
    topic_name, p = read_compact_string(b, p)
    (partition_index,) = unpack_i(b, p)
    return DescribeTopicPartitionsResponse.Cursor(topic_name, partition_index), skip_tags(b, p + 4)


def _read_describe_topic_partitions_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 26,
        _read_describe_topic_partitions_response_describe_topic_partitions_response_topic_0
    )
    next_cursor, p = read_nullable_struct(b, p, _read_describe_topic_partitions_response_cursor_0)
    return DescribeTopicPartitionsResponse(throttle_time_ms, topics, next_cursor), skip_tags(b, p)


def _write_describe_topic_partitions_response_describe_topic_partitions_response_partition_0(w, o):
    w(
        pack_hiii(o.error_code, o.partition_index, o.leader_id, o.leader_epoch) +
        pack_compact_numbers(o.replica_nodes, "i") + pack_compact_numbers(o.isr_nodes, "i") +
        pack_compact_nullable_numbers(o.eligible_leader_replicas, "i") +
        pack_compact_nullable_numbers(o.last_known_elr, "i") +
        pack_compact_numbers(o.offline_replicas, "i") + NO_TAGS
    )


def _write_describe_topic_partitions_response_describe_topic_partitions_response_topic_0(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.name) + pack_ut(o.topic_id.bytes,
        o.is_internal)
    )
    write_compact_array(
        w, o.partitions,
        _write_describe_topic_partitions_response_describe_topic_partitions_response_partition_0
    )
    w(pack_ix(o.topic_authorized_operations))


def _write_describe_topic_partitions_response_cursor_0(w, o):
    w(pack_compact_string(o.topic_name) + pack_ix(o.partition_index))


def _write_describe_topic_partitions_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.topics,
        _write_describe_topic_partitions_response_describe_topic_partitions_response_topic_0
    )
    write_nullable_struct(w, o.next_cursor, _write_describe_topic_partitions_response_cursor_0)
    w(NO_TAGS)


DescribeTopicPartitionsResponse.readers = since(0, {0: _read_describe_topic_partitions_response_0})
DescribeTopicPartitionsResponse.writers = since(0, {0: _write_describe_topic_partitions_response_0})


# -- 76: ShareGroupHeartbeat -------------------------------------------------------------------


class ShareGroupHeartbeatRequest(ApiMessage):
    """API key 76, the request, version 1."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: Sequence[str] | None = None


def _read_share_group_heartbeat_request_1(b, p):
    group_id, p = read_compact_string(b, p)
    member_id, p = read_compact_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    rack_id, p = read_compact_nullable_string(b, p + 4)
    subscribed_topic_names, p = read_compact_nullable_array(b, p, 1, read_compact_string)
    return ShareGroupHeartbeatRequest(
        group_id, member_id, member_epoch, rack_id, subscribed_topic_names
    ), skip_tags(b, p)


def _write_share_group_heartbeat_request_1(w, o):
    w(
        pack_compact_string(o.group_id) + pack_compact_string(o.member_id) + pack_i(o.member_epoch)
        + pack_compact_nullable_string(o.rack_id) +
        pack_compact_nullable_array(o.subscribed_topic_names, pack_compact_string) + NO_TAGS
    )


ShareGroupHeartbeatRequest.readers = since(1, {1: _read_share_group_heartbeat_request_1})
ShareGroupHeartbeatRequest.writers = since(1, {1: _write_share_group_heartbeat_request_1})


class ShareGroupHeartbeatResponse(ApiMessage):
    """API key 76, the response, version 1."""

    class TopicPartitions(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[int] = ()

    class Assignment(Message):
        topic_partitions: Sequence[ShareGroupHeartbeatResponse.TopicPartitions] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ShareGroupHeartbeatResponse.Assignment | None = None


def _read_share_group_heartbeat_response_topic_partitions_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_numbers(b, p + 16, "i")
    return ShareGroupHeartbeatResponse.TopicPartitions(topic_id, partitions), skip_tags(b, p)


def _read_share_group_heartbeat_response_assignment_1(b, p):
    topic_partitions, p = read_compact_array(
        b, p, 18, _read_share_group_heartbeat_response_topic_partitions_1
    )
    return ShareGroupHeartbeatResponse.Assignment(topic_partitions), skip_tags(b, p)


def _read_share_group_heartbeat_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    member_id, p = read_compact_nullable_string(b, p)
    member_epoch, heartbeat_interval_ms = unpack_ii(b, p)
    assignment, p = read_nullable_struct(
        b, p + 8, _read_share_group_heartbeat_response_assignment_1
    )
    return ShareGroupHeartbeatResponse(
        throttle_time_ms, error_code, error_message, member_id, member_epoch, heartbeat_interval_ms,
        assignment
    ), skip_tags(b, p)


def _write_share_group_heartbeat_response_topic_partitions_1(w, o):
    w(pack_u(o.topic_id.bytes) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_share_group_heartbeat_response_assignment_1(w, o):
    write_compact_array(
        w, o.topic_partitions, _write_share_group_heartbeat_response_topic_partitions_1
    )
    w(NO_TAGS)


def _write_share_group_heartbeat_response_1(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_nullable_string(o.member_id) + pack_ii(o.member_epoch, o.heartbeat_interval_ms)
    )
    write_nullable_struct(w, o.assignment, _write_share_group_heartbeat_response_assignment_1)
    w(NO_TAGS)


ShareGroupHeartbeatResponse.readers = since(1, {1: _read_share_group_heartbeat_response_1})
ShareGroupHeartbeatResponse.writers = since(1, {1: _write_share_group_heartbeat_response_1})


# -- 77: ShareGroupDescribe --------------------------------------------------------------------


class ShareGroupDescribeRequest(ApiMessage):
    """API key 77, the request, version 1."""

    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


def _read_share_group_describe_request_1(b, p):
    group_ids, p = read_compact_array(b, p, 1, read_compact_string)
    (include_authorized_operations,) = unpack_t(b, p)
    return ShareGroupDescribeRequest(group_ids, include_authorized_operations), skip_tags(b, p + 1)


def _write_share_group_describe_request_1(w, o):
    w(
        pack_compact_array(o.group_ids, pack_compact_string) +
        pack_tx(o.include_authorized_operations)
    )


ShareGroupDescribeRequest.readers = since(1, {1: _read_share_group_describe_request_1})
ShareGroupDescribeRequest.writers = since(1, {1: _write_share_group_describe_request_1})


class ShareGroupDescribeResponse(ApiMessage):
    """API key 77, the response, version 1."""

    class TopicPartitions(Message):
        topic_id: UUID = ZERO_UUID
        topic_name: str = ""
        partitions: Sequence[int] = ()

    class Assignment(Message):
        topic_partitions: Sequence[ShareGroupDescribeResponse.TopicPartitions] = ()

    class Member(Message):
        member_id: str = ""
        rack_id: str | None = None
        member_epoch: int = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: Sequence[str] = ()
        assignment: ShareGroupDescribeResponse.Assignment = field(
            default_factory=lambda: ShareGroupDescribeResponse.Assignment()
        )

    class DescribedGroup(Message):
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: Sequence[ShareGroupDescribeResponse.Member] = ()
        authorized_operations: int = -2147483648

    throttle_time_ms: int = 0
    groups: Sequence[ShareGroupDescribeResponse.DescribedGroup] = ()


def _read_share_group_describe_response_topic_partitions_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    topic_name, p = read_compact_string(b, p + 16)
    partitions, p = read_compact_numbers(b, p, "i")
    return ShareGroupDescribeResponse.TopicPartitions(
        topic_id, topic_name, partitions
    ), skip_tags(b, p)


def _read_share_group_describe_response_assignment_1(b, p):
    topic_partitions, p = read_compact_array(
        b, p, 19, _read_share_group_describe_response_topic_partitions_1
    )
    return ShareGroupDescribeResponse.Assignment(topic_partitions), skip_tags(b, p)


def _read_share_group_describe_response_member_1(b, p):
    member_id, p = read_compact_string(b, p)
    rack_id, p = read_compact_nullable_string(b, p)
    (member_epoch,) = unpack_i(b, p)
    client_id, p = read_compact_string(b, p + 4)
    client_host, p = read_compact_string(b, p)
    subscribed_topic_names, p = read_compact_array(b, p, 1, read_compact_string)
    assignment, p = _read_share_group_describe_response_assignment_1(b, p)
    return ShareGroupDescribeResponse.Member(
        member_id, rack_id, member_epoch, client_id, client_host, subscribed_topic_names, assignment
    ), skip_tags(b, p)


def _read_share_group_describe_response_described_group_1(b, p):
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    group_id, p = read_compact_string(b, p)
    group_state, p = read_compact_string(b, p)
    group_epoch, assignment_epoch = unpack_ii(b, p)
    assignor_name, p = read_compact_string(b, p + 8)
    members, p = read_compact_array(b, p, 12, _read_share_group_describe_response_member_1)
    (authorized_operations,) = unpack_i(b, p)
    return ShareGroupDescribeResponse.DescribedGroup(
        error_code, error_message, group_id, group_state, group_epoch, assignment_epoch,
        assignor_name, members, authorized_operations
    ), skip_tags(b, p + 4)


def _read_share_group_describe_response_1(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(
        b, p + 4, 20, _read_share_group_describe_response_described_group_1
    )
    return ShareGroupDescribeResponse(throttle_time_ms, groups), skip_tags(b, p)


def _write_share_group_describe_response_topic_partitions_1(w, o):
    w(
        pack_u(o.topic_id.bytes) + pack_compact_string(o.topic_name) +
        pack_compact_numbers(o.partitions, "i") + NO_TAGS
    )


def _write_share_group_describe_response_assignment_1(w, o):
    write_compact_array(
        w, o.topic_partitions, _write_share_group_describe_response_topic_partitions_1
    )
    w(NO_TAGS)


def _write_share_group_describe_response_member_1(w, o):
    w(
        pack_compact_string(o.member_id) + pack_compact_nullable_string(o.rack_id) +
        pack_i(o.member_epoch) + pack_compact_string(o.client_id) +
        pack_compact_string(o.client_host) + pack_compact_array(o.subscribed_topic_names,
        pack_compact_string)
    )
    _write_share_group_describe_response_assignment_1(w, o.assignment)
    w(NO_TAGS)


def _write_share_group_describe_response_described_group_1(w, o):
    w(
        pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_compact_string(o.group_id) + pack_compact_string(o.group_state) +
        pack_ii(o.group_epoch, o.assignment_epoch) + pack_compact_string(o.assignor_name)
    )
    write_compact_array(w, o.members, _write_share_group_describe_response_member_1)
    w(pack_ix(o.authorized_operations))


def _write_share_group_describe_response_1(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(w, o.groups, _write_share_group_describe_response_described_group_1)
    w(NO_TAGS)


ShareGroupDescribeResponse.readers = since(1, {1: _read_share_group_describe_response_1})
ShareGroupDescribeResponse.writers = since(1, {1: _write_share_group_describe_response_1})


# -- 78: ShareFetch ----------------------------------------------------------------------------


class ShareFetchRequest(ApiMessage):
    """API key 78, the request, version 1."""

    class AcknowledgementBatch(Message):
        first_offset: int = 0
        last_offset: int = 0
        acknowledge_types: Sequence[int] = ()

    class FetchPartition(Message):
        partition_index: int = 0
        acknowledgement_batches: Sequence[ShareFetchRequest.AcknowledgementBatch] = ()

    class FetchTopic(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[ShareFetchRequest.FetchPartition] = ()

    class ForgottenTopic(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[int] = ()

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    topics: Sequence[ShareFetchRequest.FetchTopic] = ()
    forgotten_topics_data: Sequence[ShareFetchRequest.ForgottenTopic] = ()


def _read_share_fetch_request_acknowledgement_batch_1(b, p):
    first_offset, last_offset = unpack_qq(b, p)
    acknowledge_types, p = read_compact_numbers(b, p + 16, "b")
    return ShareFetchRequest.AcknowledgementBatch(
        first_offset, last_offset, acknowledge_types
    ), skip_tags(b, p)


def _read_share_fetch_request_fetch_partition_1(b, p):
    (partition_index,) = unpack_i(b, p)
    acknowledgement_batches, p = read_compact_array(
        b, p + 4, 18, _read_share_fetch_request_acknowledgement_batch_1
    )
    return ShareFetchRequest.FetchPartition(
        partition_index, acknowledgement_batches
    ), skip_tags(b, p)


def _read_share_fetch_request_fetch_topic_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(b, p + 16, 6, _read_share_fetch_request_fetch_partition_1)
    return ShareFetchRequest.FetchTopic(topic_id, partitions), skip_tags(b, p)


def _read_share_fetch_request_forgotten_topic_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_numbers(b, p + 16, "i")
    return ShareFetchRequest.ForgottenTopic(topic_id, partitions), skip_tags(b, p)


def _read_share_fetch_request_1(b, p):
    group_id, p = read_compact_nullable_string(b, p)
    member_id, p = read_compact_nullable_string(b, p)
    (
        share_session_epoch, max_wait_ms, min_bytes, max_bytes, max_records, batch_size
    ) = unpack_iiiiii(b, p)
    topics, p = read_compact_array(b, p + 24, 18, _read_share_fetch_request_fetch_topic_1)
    forgotten_topics_data, p = read_compact_array(
        b, p, 18, _read_share_fetch_request_forgotten_topic_1
    )
    return ShareFetchRequest(
        group_id, member_id, share_session_epoch, max_wait_ms, min_bytes, max_bytes, max_records,
        batch_size, topics, forgotten_topics_data
    ), skip_tags(b, p)


def _write_share_fetch_request_acknowledgement_batch_1(w, o):
    w(
        pack_qq(o.first_offset, o.last_offset) + pack_compact_numbers(o.acknowledge_types, "b") +
        NO_TAGS
    )


def _write_share_fetch_request_fetch_partition_1(w, o):
    w(pack_i(o.partition_index))
    write_compact_array(
        w, o.acknowledgement_batches, _write_share_fetch_request_acknowledgement_batch_1
    )
    w(NO_TAGS)


def _write_share_fetch_request_fetch_topic_1(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_share_fetch_request_fetch_partition_1)
    w(NO_TAGS)


def _write_share_fetch_request_forgotten_topic_1(w, o):
    w(pack_u(o.topic_id.bytes) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_share_fetch_request_1(w, o):
    w(
        pack_compact_nullable_string(o.group_id) + pack_compact_nullable_string(o.member_id) +
        pack_iiiiii(o.share_session_epoch, o.max_wait_ms, o.min_bytes, o.max_bytes, o.max_records,
        o.batch_size)
    )
    write_compact_array(w, o.topics, _write_share_fetch_request_fetch_topic_1)
    write_compact_array(w, o.forgotten_topics_data, _write_share_fetch_request_forgotten_topic_1)
    w(NO_TAGS)


ShareFetchRequest.readers = since(1, {1: _read_share_fetch_request_1})
ShareFetchRequest.writers = since(1, {1: _write_share_fetch_request_1})


class ShareFetchResponse(ApiMessage):
    """API key 78, the response, version 1."""

    class LeaderIdAndEpoch(Message):
        leader_id: int = 0
        leader_epoch: int = 0

    class AcquiredRecords(Message):
        first_offset: int = 0
        last_offset: int = 0
        delivery_count: int = 0

    class PartitionData(Message):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        acknowledge_error_code: int = 0
        acknowledge_error_message: str | None = None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = field(
            default_factory=lambda: ShareFetchResponse.LeaderIdAndEpoch()
        )
        records: Records = b""
        acquired_records: Sequence[ShareFetchResponse.AcquiredRecords] = ()

    class ShareFetchableTopicResponse(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[ShareFetchResponse.PartitionData] = ()

    class NodeEndpoint(Message):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: Sequence[ShareFetchResponse.ShareFetchableTopicResponse] = ()
    node_endpoints: Sequence[ShareFetchResponse.NodeEndpoint] = ()


def _read_share_fetch_response_leader_id_and_epoch_1(b, p):
    leader_id, leader_epoch = unpack_ii(b, p)
    return ShareFetchResponse.LeaderIdAndEpoch(leader_id, leader_epoch), skip_tags(b, p + 8)


def _read_share_fetch_response_acquired_records_1(b, p):
    first_offset, last_offset, delivery_count = unpack_qqh(b, p)
    return ShareFetchResponse.AcquiredRecords(
        first_offset, last_offset, delivery_count
    ), skip_tags(b, p + 18)


def _read_share_fetch_response_partition_data_1(b, p):
    partition_index, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    (acknowledge_error_code,) = unpack_h(b, p)
    acknowledge_error_message, p = read_compact_nullable_string(b, p + 2)
    current_leader, p = _read_share_fetch_response_leader_id_and_epoch_1(b, p)
    records, p = read_compact_records(b, p)
    acquired_records, p = read_compact_array(
        b, p, 19, _read_share_fetch_response_acquired_records_1
    )
    return ShareFetchResponse.PartitionData(
        partition_index, error_code, error_message, acknowledge_error_code,
        acknowledge_error_message, current_leader, records, acquired_records
    ), skip_tags(b, p)


def _read_share_fetch_response_share_fetchable_topic_response_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(b, p + 16, 22, _read_share_fetch_response_partition_data_1)
    return ShareFetchResponse.ShareFetchableTopicResponse(topic_id, partitions), skip_tags(b, p)


def _read_share_fetch_response_node_endpoint_1(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    return ShareFetchResponse.NodeEndpoint(node_id, host, port, rack), skip_tags(b, p)


def _read_share_fetch_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    (acquisition_lock_timeout_ms,) = unpack_i(b, p)
    responses, p = read_compact_array(
        b, p + 4, 18, _read_share_fetch_response_share_fetchable_topic_response_1
    )
    node_endpoints, p = read_compact_array(b, p, 11, _read_share_fetch_response_node_endpoint_1)
    return ShareFetchResponse(
        throttle_time_ms, error_code, error_message, acquisition_lock_timeout_ms, responses,
        node_endpoints
    ), skip_tags(b, p)


def _write_share_fetch_response_leader_id_and_epoch_1(w, o):
    w(pack_iix(o.leader_id, o.leader_epoch))


def _write_share_fetch_response_acquired_records_1(w, o):
    w(pack_qqhx(o.first_offset, o.last_offset, o.delivery_count))


def _write_share_fetch_response_partition_data_1(w, o):
    w(
        pack_ih(o.partition_index, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_h(o.acknowledge_error_code) + pack_compact_nullable_string(o.acknowledge_error_message)
    )
    _write_share_fetch_response_leader_id_and_epoch_1(w, o.current_leader)
    write_compact_records(w, o.records)
    write_compact_array(w, o.acquired_records, _write_share_fetch_response_acquired_records_1)
    w(NO_TAGS)


def _write_share_fetch_response_share_fetchable_topic_response_1(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_share_fetch_response_partition_data_1)
    w(NO_TAGS)


def _write_share_fetch_response_node_endpoint_1(w, o):
    w(
        pack_i(o.node_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + NO_TAGS
    )


def _write_share_fetch_response_1(w, o):
    w(
        pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message) +
        pack_i(o.acquisition_lock_timeout_ms)
    )
    write_compact_array(
        w, o.responses, _write_share_fetch_response_share_fetchable_topic_response_1
    )
    write_compact_array(w, o.node_endpoints, _write_share_fetch_response_node_endpoint_1)
    w(NO_TAGS)


ShareFetchResponse.readers = since(1, {1: _read_share_fetch_response_1})
ShareFetchResponse.writers = since(1, {1: _write_share_fetch_response_1})


# -- 79: ShareAcknowledge ----------------------------------------------------------------------


class ShareAcknowledgeRequest(ApiMessage):
    """API key 79, the request, version 1."""

    class AcknowledgementBatch(Message):
        first_offset: int = 0
        last_offset: int = 0
        acknowledge_types: Sequence[int] = ()

    class AcknowledgePartition(Message):
        partition_index: int = 0
        acknowledgement_batches: Sequence[ShareAcknowledgeRequest.AcknowledgementBatch] = ()

    class AcknowledgeTopic(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[ShareAcknowledgeRequest.AcknowledgePartition] = ()

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    topics: Sequence[ShareAcknowledgeRequest.AcknowledgeTopic] = ()


def _read_share_acknowledge_request_acknowledgement_batch_1(b, p):
    first_offset, last_offset = unpack_qq(b, p)
    acknowledge_types, p = read_compact_numbers(b, p + 16, "b")
    return ShareAcknowledgeRequest.AcknowledgementBatch(
        first_offset, last_offset, acknowledge_types
    ), skip_tags(b, p)


def _read_share_acknowledge_request_acknowledge_partition_1(b, p):
    (partition_index,) = unpack_i(b, p)
    acknowledgement_batches, p = read_compact_array(
        b, p + 4, 18, _read_share_acknowledge_request_acknowledgement_batch_1
    )
    return ShareAcknowledgeRequest.AcknowledgePartition(
        partition_index, acknowledgement_batches
    ), skip_tags(b, p)


def _read_share_acknowledge_request_acknowledge_topic_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 16, 6, _read_share_acknowledge_request_acknowledge_partition_1
    )
    return ShareAcknowledgeRequest.AcknowledgeTopic(topic_id, partitions), skip_tags(b, p)


def _read_share_acknowledge_request_1(b, p):
    group_id, p = read_compact_nullable_string(b, p)
    member_id, p = read_compact_nullable_string(b, p)
    (share_session_epoch,) = unpack_i(b, p)
    topics, p = read_compact_array(
        b, p + 4, 18, _read_share_acknowledge_request_acknowledge_topic_1
    )
    return ShareAcknowledgeRequest(
        group_id, member_id, share_session_epoch, topics
    ), skip_tags(b, p)


def _write_share_acknowledge_request_acknowledgement_batch_1(w, o):
    w(
        pack_qq(o.first_offset, o.last_offset) + pack_compact_numbers(o.acknowledge_types, "b") +
        NO_TAGS
    )


def _write_share_acknowledge_request_acknowledge_partition_1(w, o):
    w(pack_i(o.partition_index))
    write_compact_array(
        w, o.acknowledgement_batches, _write_share_acknowledge_request_acknowledgement_batch_1
    )
    w(NO_TAGS)


def _write_share_acknowledge_request_acknowledge_topic_1(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_share_acknowledge_request_acknowledge_partition_1)
    w(NO_TAGS)


def _write_share_acknowledge_request_1(w, o):
    w(
        pack_compact_nullable_string(o.group_id) + pack_compact_nullable_string(o.member_id) +
        pack_i(o.share_session_epoch)
    )
    write_compact_array(w, o.topics, _write_share_acknowledge_request_acknowledge_topic_1)
    w(NO_TAGS)


ShareAcknowledgeRequest.readers = since(1, {1: _read_share_acknowledge_request_1})
ShareAcknowledgeRequest.writers = since(1, {1: _write_share_acknowledge_request_1})


class ShareAcknowledgeResponse(ApiMessage):
    """API key 79, the response, version 1."""

    class LeaderIdAndEpoch(Message):
        leader_id: int = 0
        leader_epoch: int = 0

    class PartitionData(Message):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = field(
            default_factory=lambda: ShareAcknowledgeResponse.LeaderIdAndEpoch()
        )

    class ShareAcknowledgeTopicResponse(Message):
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[ShareAcknowledgeResponse.PartitionData] = ()

    class NodeEndpoint(Message):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ()
    node_endpoints: Sequence[ShareAcknowledgeResponse.NodeEndpoint] = ()


def _read_share_acknowledge_response_leader_id_and_epoch_1(b, p):
    leader_id, leader_epoch = unpack_ii(b, p)
    return ShareAcknowledgeResponse.LeaderIdAndEpoch(leader_id, leader_epoch), skip_tags(b, p + 8)


def _read_share_acknowledge_response_partition_data_1(b, p):
    partition_index, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    current_leader, p = _read_share_acknowledge_response_leader_id_and_epoch_1(b, p)
    return ShareAcknowledgeResponse.PartitionData(
        partition_index, error_code, error_message, current_leader
    ), skip_tags(b, p)


def _read_share_acknowledge_response_share_acknowledge_topic_response_1(b, p):
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 16, 17, _read_share_acknowledge_response_partition_data_1
    )
    return ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(
        topic_id, partitions
    ), skip_tags(b, p)


def _read_share_acknowledge_response_node_endpoint_1(b, p):
    (node_id,) = unpack_i(b, p)
    host, p = read_compact_string(b, p + 4)
    (port,) = unpack_i(b, p)
    rack, p = read_compact_nullable_string(b, p + 4)
    return ShareAcknowledgeResponse.NodeEndpoint(node_id, host, port, rack), skip_tags(b, p)


def _read_share_acknowledge_response_1(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    responses, p = read_compact_array(
        b, p, 18, _read_share_acknowledge_response_share_acknowledge_topic_response_1
    )
    node_endpoints, p = read_compact_array(
        b, p, 11, _read_share_acknowledge_response_node_endpoint_1
    )
    return ShareAcknowledgeResponse(
        throttle_time_ms, error_code, error_message, responses, node_endpoints
    ), skip_tags(b, p)


def _write_share_acknowledge_response_leader_id_and_epoch_1(w, o):
    w(pack_iix(o.leader_id, o.leader_epoch))


def _write_share_acknowledge_response_partition_data_1(w, o):
    w(pack_ih(o.partition_index, o.error_code) + pack_compact_nullable_string(o.error_message))
    _write_share_acknowledge_response_leader_id_and_epoch_1(w, o.current_leader)
    w(NO_TAGS)


def _write_share_acknowledge_response_share_acknowledge_topic_response_1(w, o):
    w(pack_u(o.topic_id.bytes))
    write_compact_array(w, o.partitions, _write_share_acknowledge_response_partition_data_1)
    w(NO_TAGS)


def _write_share_acknowledge_response_node_endpoint_1(w, o):
    w(
        pack_i(o.node_id) + pack_compact_string(o.host) + pack_i(o.port) +
        pack_compact_nullable_string(o.rack) + NO_TAGS
    )


def _write_share_acknowledge_response_1(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(
        w, o.responses, _write_share_acknowledge_response_share_acknowledge_topic_response_1
    )
    write_compact_array(w, o.node_endpoints, _write_share_acknowledge_response_node_endpoint_1)
    w(NO_TAGS)


ShareAcknowledgeResponse.readers = since(1, {1: _read_share_acknowledge_response_1})
ShareAcknowledgeResponse.writers = since(1, {1: _write_share_acknowledge_response_1})


# -- 90: DescribeShareGroupOffsets -------------------------------------------------------------


class DescribeShareGroupOffsetsRequest(ApiMessage):
    """API key 90, the request, version 0."""

    class DescribeShareGroupOffsetsRequestTopic(Message):
        topic_name: str = ""
        partitions: Sequence[int] = ()

    class DescribeShareGroupOffsetsRequestGroup(Message):
        group_id: str = ""
        topics: Sequence[
            DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
        ] | None = ()

    groups: Sequence[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ()


def _read_describe_share_group_offsets_request_describe_share_group_offsets_request_topic_0(b, p):
    topic_name, p = read_compact_string(b, p)
    partitions, p = read_compact_numbers(b, p, "i")
    return DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
        topic_name, partitions
    ), skip_tags(b, p)


def _read_describe_share_group_offsets_request_describe_share_group_offsets_request_group_0(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_nullable_array(
        b, p, 3,
        _read_describe_share_group_offsets_request_describe_share_group_offsets_request_topic_0
    )
    return DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(
        group_id, topics
    ), skip_tags(b, p)


def _read_describe_share_group_offsets_request_0(b, p):
    groups, p = read_compact_array(
        b, p, 3,
        _read_describe_share_group_offsets_request_describe_share_group_offsets_request_group_0
    )
    return DescribeShareGroupOffsetsRequest(groups), skip_tags(b, p)


def _write_describe_share_group_offsets_request_describe_share_group_offsets_request_topic_0(w, o):
    w(pack_compact_string(o.topic_name) + pack_compact_numbers(o.partitions, "i") + NO_TAGS)


def _write_describe_share_group_offsets_request_describe_share_group_offsets_request_group_0(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_nullable_array(
        w, o.topics,
        _write_describe_share_group_offsets_request_describe_share_group_offsets_request_topic_0
    )
    w(NO_TAGS)


def _write_describe_share_group_offsets_request_0(w, o):
    write_compact_array(
        w, o.groups,
        _write_describe_share_group_offsets_request_describe_share_group_offsets_request_group_0
    )
    w(NO_TAGS)


DescribeShareGroupOffsetsRequest.readers = since(0, {
    0: _read_describe_share_group_offsets_request_0
})
DescribeShareGroupOffsetsRequest.writers = since(0, {
    0: _write_describe_share_group_offsets_request_0
})


class DescribeShareGroupOffsetsResponse(ApiMessage):
    """API key 90, the response, version 0."""

    class DescribeShareGroupOffsetsResponsePartition(Message):
        partition_index: int = 0
        start_offset: int = 0
        leader_epoch: int = 0
        error_code: int = 0
        error_message: str | None = None

    class DescribeShareGroupOffsetsResponseTopic(Message):
        topic_name: str = ""
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
        ] = ()

    class DescribeShareGroupOffsetsResponseGroup(Message):
        group_id: str = ""
        topics: Sequence[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ()
        error_code: int = 0
        error_message: str | None = None

    throttle_time_ms: int = 0
    groups: Sequence[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ()


def _read_describe_share_group_offsets_response_describe_share_group_offsets_response_partition_0(b, p):
    partition_index, start_offset, leader_epoch, error_code = unpack_iqih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 18)
    return DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition(
        partition_index, start_offset, leader_epoch, error_code, error_message
    ), skip_tags(b, p)


def _read_describe_share_group_offsets_response_describe_share_group_offsets_response_topic_0(b, p):
    topic_name, p = read_compact_string(b, p)
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 16, 20,
        _read_describe_share_group_offsets_response_describe_share_group_offsets_response_partition_0
    )
    return DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic(
        topic_name, topic_id, partitions
    ), skip_tags(b, p)


def _read_describe_share_group_offsets_response_describe_share_group_offsets_response_group_0(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_array(
        b, p, 19,
        _read_describe_share_group_offsets_response_describe_share_group_offsets_response_topic_0
    )
    (error_code,) = unpack_h(b, p)
    error_message, p = read_compact_nullable_string(b, p + 2)
    return DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup(
        group_id, topics, error_code, error_message
    ), skip_tags(b, p)


def _read_describe_share_group_offsets_response_0(b, p):
    (throttle_time_ms,) = unpack_i(b, p)
    groups, p = read_compact_array(
        b, p + 4, 6,
        _read_describe_share_group_offsets_response_describe_share_group_offsets_response_group_0
    )
    return DescribeShareGroupOffsetsResponse(throttle_time_ms, groups), skip_tags(b, p)


def _write_describe_share_group_offsets_response_describe_share_group_offsets_response_partition_0(w, o):
    w(
        pack_iqih(o.partition_index, o.start_offset, o.leader_epoch, o.error_code) +
        pack_compact_nullable_string(o.error_message) + NO_TAGS
    )


def _write_describe_share_group_offsets_response_describe_share_group_offsets_response_topic_0(w, o):
    w(pack_compact_string(o.topic_name) + pack_u(o.topic_id.bytes))
    write_compact_array(
        w, o.partitions,
        _write_describe_share_group_offsets_response_describe_share_group_offsets_response_partition_0
    )
    w(NO_TAGS)


def _write_describe_share_group_offsets_response_describe_share_group_offsets_response_group_0(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_array(
        w, o.topics,
        _write_describe_share_group_offsets_response_describe_share_group_offsets_response_topic_0
    )
    w(pack_h(o.error_code) + pack_compact_nullable_string(o.error_message) + NO_TAGS)


def _write_describe_share_group_offsets_response_0(w, o):
    w(pack_i(o.throttle_time_ms))
    write_compact_array(
        w, o.groups,
        _write_describe_share_group_offsets_response_describe_share_group_offsets_response_group_0
    )
    w(NO_TAGS)


DescribeShareGroupOffsetsResponse.readers = since(0, {
    0: _read_describe_share_group_offsets_response_0
})
DescribeShareGroupOffsetsResponse.writers = since(0, {
    0: _write_describe_share_group_offsets_response_0
})


# -- 91: AlterShareGroupOffsets ----------------------------------------------------------------


class AlterShareGroupOffsetsRequest(ApiMessage):
    """API key 91, the request, version 0."""

    class AlterShareGroupOffsetsRequestPartition(Message):
        partition_index: int = 0
        start_offset: int = 0

    class AlterShareGroupOffsetsRequestTopic(Message):
        topic_name: str = ""
        partitions: Sequence[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ()

    group_id: str = ""
    topics: Sequence[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ()


def _read_alter_share_group_offsets_request_alter_share_group_offsets_request_partition_0(b, p):
    partition_index, start_offset = unpack_iq(b, p)
    return AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
        partition_index, start_offset
    ), skip_tags(b, p + 12)


def _read_alter_share_group_offsets_request_alter_share_group_offsets_request_topic_0(b, p):
    topic_name, p = read_compact_string(b, p)
    partitions, p = read_compact_array(
        b, p, 13,
        _read_alter_share_group_offsets_request_alter_share_group_offsets_request_partition_0
    )
    return AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(
        topic_name, partitions
    ), skip_tags(b, p)


def _read_alter_share_group_offsets_request_0(b, p):
    group_id, p = read_compact_string(b, p)
    topics, p = read_compact_array(
        b, p, 3, _read_alter_share_group_offsets_request_alter_share_group_offsets_request_topic_0
    )
    return AlterShareGroupOffsetsRequest(group_id, topics), skip_tags(b, p)


def _write_alter_share_group_offsets_request_alter_share_group_offsets_request_partition_0(w, o):
    w(pack_iqx(o.partition_index, o.start_offset))


def _write_alter_share_group_offsets_request_alter_share_group_offsets_request_topic_0(w, o):
    w(pack_compact_string(o.topic_name))
    write_compact_array(
        w, o.partitions,
        _write_alter_share_group_offsets_request_alter_share_group_offsets_request_partition_0
    )
    w(NO_TAGS)


def _write_alter_share_group_offsets_request_0(w, o):
    w(pack_compact_string(o.group_id))
    write_compact_array(
        w, o.topics,
        _write_alter_share_group_offsets_request_alter_share_group_offsets_request_topic_0
    )
    w(NO_TAGS)


AlterShareGroupOffsetsRequest.readers = since(0, {0: _read_alter_share_group_offsets_request_0})
AlterShareGroupOffsetsRequest.writers = since(0, {0: _write_alter_share_group_offsets_request_0})


class AlterShareGroupOffsetsResponse(ApiMessage):
    """API key 91, the response, version 0."""

    class AlterShareGroupOffsetsResponsePartition(Message):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None

    class AlterShareGroupOffsetsResponseTopic(Message):
        topic_name: str = ""
        topic_id: UUID = ZERO_UUID
        partitions: Sequence[
            AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
        ] = ()

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ()


def _read_alter_share_group_offsets_response_alter_share_group_offsets_response_partition_0(b, p):
    partition_index, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    return AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition(
        partition_index, error_code, error_message
    ), skip_tags(b, p)


def _read_alter_share_group_offsets_response_alter_share_group_offsets_response_topic_0(b, p):
    topic_name, p = read_compact_string(b, p)
    (topic_id,) = unpack_u(b, p)
    topic_id = uuid_of(topic_id)
    partitions, p = read_compact_array(
        b, p + 16, 8,
        _read_alter_share_group_offsets_response_alter_share_group_offsets_response_partition_0
    )
    return AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic(
        topic_name, topic_id, partitions
    ), skip_tags(b, p)


def _read_alter_share_group_offsets_response_0(b, p):
    throttle_time_ms, error_code = unpack_ih(b, p)
    error_message, p = read_compact_nullable_string(b, p + 6)
    responses, p = read_compact_array(
        b, p, 19,
        _read_alter_share_group_offsets_response_alter_share_group_offsets_response_topic_0
    )
    return AlterShareGroupOffsetsResponse(
        throttle_time_ms, error_code, error_message, responses
    ), skip_tags(b, p)


def _write_alter_share_group_offsets_response_alter_share_group_offsets_response_partition_0(w, o):
    w(
        pack_ih(o.partition_index, o.error_code) + pack_compact_nullable_string(o.error_message) +
        NO_TAGS
    )


def _write_alter_share_group_offsets_response_alter_share_group_offsets_response_topic_0(w, o):
    w(pack_compact_string(o.topic_name) + pack_u(o.topic_id.bytes))
    write_compact_array(
        w, o.partitions,
        _write_alter_share_group_offsets_response_alter_share_group_offsets_response_partition_0
    )
    w(NO_TAGS)


def _write_alter_share_group_offsets_response_0(w, o):
    w(pack_ih(o.throttle_time_ms, o.error_code) + pack_compact_nullable_string(o.error_message))
    write_compact_array(
        w, o.responses,
        _write_alter_share_group_offsets_response_alter_share_group_offsets_response_topic_0
    )
    w(NO_TAGS)


AlterShareGroupOffsetsResponse.readers = since(0, {0: _read_alter_share_group_offsets_response_0})
AlterShareGroupOffsetsResponse.writers = since(0, {0: _write_alter_share_group_offsets_response_0})


APIS = (
    Api(0, "Produce", ProduceRequest, ProduceResponse, 3, 12, 9),
    Api(1, "Fetch", FetchRequest, FetchResponse, 4, 17, 12),
    Api(2, "ListOffsets", ListOffsetsRequest, ListOffsetsResponse, 1, 10, 6),
    Api(3, "Metadata", MetadataRequest, MetadataResponse, 0, 13, 9),
    Api(8, "OffsetCommit", OffsetCommitRequest, OffsetCommitResponse, 2, 9, 8),
    Api(9, "OffsetFetch", OffsetFetchRequest, OffsetFetchResponse, 1, 9, 6),
    Api(10, "FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse, 0, 6, 3),
    Api(11, "JoinGroup", JoinGroupRequest, JoinGroupResponse, 0, 9, 6),
    Api(12, "Heartbeat", HeartbeatRequest, HeartbeatResponse, 0, 4, 4),
    Api(13, "LeaveGroup", LeaveGroupRequest, LeaveGroupResponse, 0, 5, 4),
    Api(14, "SyncGroup", SyncGroupRequest, SyncGroupResponse, 0, 5, 4),
    Api(15, "DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse, 0, 6, 5),
    Api(16, "ListGroups", ListGroupsRequest, ListGroupsResponse, 0, 5, 3),
    Api(17, "SaslHandshake", SaslHandshakeRequest, SaslHandshakeResponse, 0, 1, None),
    Api(18, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse, 0, 4, 3),
    Api(19, "CreateTopics", CreateTopicsRequest, CreateTopicsResponse, 2, 7, 5),
    Api(20, "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse, 1, 6, 4),
    Api(21, "DeleteRecords", DeleteRecordsRequest, DeleteRecordsResponse, 0, 2, 2),
    Api(22, "InitProducerId", InitProducerIdRequest, InitProducerIdResponse, 0, 5, 2),
    Api(
        23, "OffsetForLeaderEpoch", OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, 2, 4,
        4
    ),
    Api(29, "DescribeAcls", DescribeAclsRequest, DescribeAclsResponse, 1, 3, 2),
    Api(30, "CreateAcls", CreateAclsRequest, CreateAclsResponse, 1, 3, 2),
    Api(31, "DeleteAcls", DeleteAclsRequest, DeleteAclsResponse, 1, 3, 2),
    Api(32, "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse, 1, 4, 4),
    Api(33, "AlterConfigs", AlterConfigsRequest, AlterConfigsResponse, 0, 2, 2),
    Api(35, "DescribeLogDirs", DescribeLogDirsRequest, DescribeLogDirsResponse, 1, 4, 2),
    Api(36, "SaslAuthenticate", SaslAuthenticateRequest, SaslAuthenticateResponse, 0, 2, 2),
    Api(37, "CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse, 0, 3, 2),
    Api(42, "DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse, 0, 2, 2),
    Api(43, "ElectLeaders", ElectLeadersRequest, ElectLeadersResponse, 0, 2, 2),
    Api(
        44, "IncrementalAlterConfigs", IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse, 0, 1, 1
    ),
    Api(
        45, "AlterPartitionReassignments", AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse, 0, 1, 0
    ),
    Api(
        46, "ListPartitionReassignments", ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse, 0, 0, 0
    ),
    Api(47, "OffsetDelete", OffsetDeleteRequest, OffsetDeleteResponse, 0, 0, None),
    Api(
        48, "DescribeClientQuotas", DescribeClientQuotasRequest, DescribeClientQuotasResponse, 0, 1,
        1
    ),
    Api(49, "AlterClientQuotas", AlterClientQuotasRequest, AlterClientQuotasResponse, 0, 1, 1),
    Api(
        50, "DescribeUserScramCredentials", DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse, 0, 0, 0
    ),
    Api(
        51, "AlterUserScramCredentials", AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse, 0, 0, 0
    ),
    Api(60, "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse, 0, 2, 0),
    Api(61, "DescribeProducers", DescribeProducersRequest, DescribeProducersResponse, 0, 0, 0),
    Api(
        65, "DescribeTransactions", DescribeTransactionsRequest, DescribeTransactionsResponse, 0, 0,
        0
    ),
    Api(66, "ListTransactions", ListTransactionsRequest, ListTransactionsResponse, 0, 2, 0),
    Api(
        68, "ConsumerGroupHeartbeat", ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
        0, 1, 0
    ),
    Api(
        69, "ConsumerGroupDescribe", ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, 0,
        1, 0
    ),
    Api(
        71, "GetTelemetrySubscriptions", GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse, 0, 0, 0
    ),
    Api(
        74, "ListConfigResources", ListConfigResourcesRequest, ListConfigResourcesResponse, 0, 1, 0
    ),
    Api(
        75, "DescribeTopicPartitions", DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse, 0, 0, 0
    ),
    Api(
        76, "ShareGroupHeartbeat", ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, 1, 1, 0
    ),
    Api(77, "ShareGroupDescribe", ShareGroupDescribeRequest, ShareGroupDescribeResponse, 1, 1, 0),
    Api(78, "ShareFetch", ShareFetchRequest, ShareFetchResponse, 1, 1, 0),
    Api(79, "ShareAcknowledge", ShareAcknowledgeRequest, ShareAcknowledgeResponse, 1, 1, 0),
    Api(
        90, "DescribeShareGroupOffsets", DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsResponse, 0, 0, 0
    ),
    Api(
        91, "AlterShareGroupOffsets", AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse,
        0, 0, 0
    ),
)
