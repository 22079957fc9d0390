"""Batches that clients of Kafka made of the same rows, one of each codec; as Base64."""

# ruff: noqa: E501 (what cannot be broken is not read either)

ROWS = [
    (
        1_700_000_000_000,
        b"k0",
        b'{"flight": 1545, "origin": "EWR"}',
        [("trace", b"1"), ("trace", None), ("", b"")],
    ),
    (1_699_999_999_990, None, b'{"flight": 1546, "origin": "EWR"}', []),
    (1_700_000_000_005, b"", None, []),
    (1_700_000_000_005, b"k0", b"", [("h\u00e9", b"\x00\xff")]),
]

#: By client and codec.
BATCHES = {
    # Java's client 4.1.1 (`MemoryRecords.builder`)
    (
        "java",
        "none",
    ): "AAAAAAAAAAAAAACr/////wLFsS2xAAAAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABHQAAAAEazBCeyJmbGlnaHQiOiAxNTQ1LCAib3JpZ2luIjogIkVXUiJ9Bgp0cmFjZQIxCnRyYWNlAQAATgATAgFCeyJmbGlnaHQiOiAxNTQ2LCAib3JpZ2luIjogIkVXUiJ9AAwACgQAAQAeAAoGBGswAAIGaMOpBAD/",
    (
        "java",
        "gzip",
    ): "AAAAAAAAAAAAAACc/////wKYw62mAAEAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABB+LCAAAAAAAAP8rYWBgYMk2cKpWSsvJTM8oUbJSMDQ1MdVRUMovykzPzAPylVzDg5Rq2bhKihKTU5kMITQjA4MfgzATI5pGM0yNDDwMXCwMjAxyDFxsQJsYmNgyDq9kYfgPANhvf6B6AAAA",
    (
        "java",
        "snappy",
    ): "AAAAAAAAAAAAAACm/////wKG8HP3AAIAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABIJTTkFQUFkAAAAAAQAAAAEAAABhesh0AAAABGswQnsiZmxpZ2h0IjogMTU0NSwgIm9yaWdpbiI6ICJFV1IifQYKdHJhY2UCMQoFCBwBAABOABMCATo5AAA2RjkAXAAMAAoEAAEAHgAKBgRrMAACBmjDqQQA/w==",
    (
        "java",
        "lz4",
    ): "AAAAAAAAAAAAAACf/////wKFShOyAAMAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABAQiTRhgQIJfAAAA8iN0AAAABGswQnsiZmxpZ2h0IjogMTU0NSwgIm9yaWdpbiI6ICJFV1IifQYKdHJhY2UCMQgAiwEAAE4AEwIBOQAeNjkA8AkADAAKBAABAB4ACgYEazAAAgZow6kEAP8AAAAA",
    (
        "java",
        "zstd",
    ): "AAAAAAAAAAAAAACc/////wKGwDquAAQAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABCi1L/0AWPwCADQFdAAAAARrMEJ7ImZsaWdodCI6IDE1NDUsICJvcmlnaW4iOiAiRVdSIn0GCnRyYWNlAjEBAABOABMCATYADAAKBAABAB4ACgYEazAAAgZow6kEAP8DAMATXHUuGwoUAQAA",
    # librdkafka 2.16.0, by its producer
    (
        "rdkafka",
        "none",
    ): "AAAAAAAAAAAAAACrAAAAAALFsS2xAAAAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABHQAAAAEazBCeyJmbGlnaHQiOiAxNTQ1LCAib3JpZ2luIjogIkVXUiJ9Bgp0cmFjZQIxCnRyYWNlAQAATgATAgFCeyJmbGlnaHQiOiAxNTQ2LCAib3JpZ2luIjogIkVXUiJ9AAwACgQAAQAeAAoGBGswAAIGaMOpBAD/",
    (
        "rdkafka",
        "gzip",
    ): "AAAAAAAAAAAAAACcAAAAAAJ/EDJKAAEAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABB+LCAAAAAAAAAMrYWBgYMk2cKpWSsvJTM8oUbJSMDQ1MdVRUMovykzPzAPylVzDg5Rq2bhKihKTU5kMITQjA4MfgzATI5pGM0yNDDwMXCwMjAxyDFxsQJsYmNgyDq9kYfgPANhvf6B6AAAA",
    (
        "rdkafka",
        "snappy",
    ): "AAAAAAAAAAAAAACTAAAAAAKi973QAAIAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABHrIdAAAAARrMEJ7ImZsaWdodCI6IDE1NDUsICJvcmlnaW4iOiAiRVdSIn0GCnRyYWNlAjEKBQgcAQAATgATAgE6OQAENixCOQBcAAwACgQAAQAeAAoGBGswAAIGaMOpBAD/",
    (
        "rdkafka",
        "lz4",
    ): "AAAAAAAAAAAAAACfAAAAAAKFShOyAAMAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABAQiTRhgQIJfAAAA8iN0AAAABGswQnsiZmxpZ2h0IjogMTU0NSwgIm9yaWdpbiI6ICJFV1IifQYKdHJhY2UCMQgAiwEAAE4AEwIBOQAeNjkA8AkADAAKBAABAB4ACgYEazAAAgZow6kEAP8AAAAA",
    (
        "rdkafka",
        "zstd",
    ): "AAAAAAAAAAAAAACZAAAAAALMMsKaAAQAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABCi1L/0AWP0CADQFdAAAAARrMEJ7ImZsaWdodCI6IDE1NDUsICJvcmlnaW4iOiAiRVdSIn0GCnRyYWNlAjEBAABOABMCATYADAAKBAABAB4ACgYEazAAAgZow6kEAP8DAMATXHUuGwoU",
    # aiokafka 0.14.0 (snappy in Java's framing)
    (
        "aio",
        "none",
    ): "AAAAAAAAAAAAAACr/////wLFsS2xAAAAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABHQAAAAEazBCeyJmbGlnaHQiOiAxNTQ1LCAib3JpZ2luIjogIkVXUiJ9Bgp0cmFjZQIxCnRyYWNlAQAATgATAgFCeyJmbGlnaHQiOiAxNTQ2LCAib3JpZ2luIjogIkVXUiJ9AAwACgQAAQAeAAoGBGswAAIGaMOpBAD/",
    (
        "aio",
        "gzip",
    ): "AAAAAAAAAAAAAACc/////wIob1h5AAEAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABB+LCABedQxrAv8rYWBgYMk2cKpWSsvJTM8oUbJSMDQ1MdVRUMovykzPzAPylVzDg5Rq2bhKihKTU5kMITQjA4MfgzATI5pGM0yNDDwMXCwMjAxyDFxsQJsYmNgyDq9kYfgPANhvf6B6AAAA",
    (
        "aio",
        "snappy",
    ): "AAAAAAAAAAAAAACn/////wIDwaISAAIAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABIJTTkFQUFkAAAAAAQAAAAEAAABiesh0AAAABGswQnsiZmxpZ2h0IjogMTU0NSwgIm9yaWdpbiI6ICJFV1IifQYKdHJhY2UCMQoFCBwBAABOABMCATo5AAQ2LEI5AFwADAAKBAABAB4ACgYEazAAAgZow6kEAP8=",
    (
        "aio",
        "lz4",
    ): "AAAAAAAAAAAAAACj/////wJp0CcjAAMAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABAQiTRhwQK1fAAAA8iN0AAAABGswQnsiZmxpZ2h0IjogMTU0NSwgIm9yaWdpbiI6ICJFV1IifQYKdHJhY2UCMQgAiwEAAE4AEwIBOQAeNjkA8AkADAAKBAABAB4ACgYEazAAAgZow6kEAP8j9i9JAAAAAA==",
    (
        "aio",
        "zstd",
    ): "AAAAAAAAAAAAAACZ/////wIKKBamAAQAAAADAAABi8/laAAAAAGLz+VoBf//////////////////AAAABCi1L/0gev0CADQFdAAAAARrMEJ7ImZsaWdodCI6IDE1NDUsICJvcmlnaW4iOiAiRVdSIn0GCnRyYWNlAjEBAABOABMCATYADAAKBAABAB4ACgYEazAAAgZow6kEAP8DAMATXHUuGwoU",
}
