"""What a worker process and its pool write to each other: a length, then the content."""

from kube_runtime.controller.worker_process import LENGTH_BYTES, frame


def test_a_frame_begins_with_the_length_of_its_content() -> None:
    written = frame(b"abc")
    assert (3, b"abc") == (int.from_bytes(written[:LENGTH_BYTES], "big"), written[LENGTH_BYTES:])


def test_empty_content_has_a_frame_too() -> None:
    assert LENGTH_BYTES == len(frame(b""))
