"""A bill of materials names each thing of an image once, and is the same for the same image."""

from __future__ import annotations

from dev.images.bill import bill_of_materials

DIGEST = "sha256:aa"
CONTENTS = [
    {"name": "kopf", "version": "1.45.2", "purl": "pkg:pypi/kopf@1.45.2"},
    {"name": "libc6", "version": "2.36-9", "purl": "pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=debian-12"},
]


def test_each_thing_is_a_component_under_its_package_url() -> None:
    bill = bill_of_materials("operator:1", DIGEST, CONTENTS)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert [each["purl"] for each in bill["components"]] == [each["purl"] for each in CONTENTS]
    assert all(each["bom-ref"] == each["purl"] for each in bill["components"])
    assert bill["metadata"]["component"]["version"] == DIGEST


def test_the_serial_number_follows_the_image() -> None:
    numbers = [bill_of_materials("x", digest, [])["serialNumber"] for digest in (DIGEST, DIGEST, "sha256:bb")]
    assert numbers[0] == numbers[1] != numbers[2]
