from __future__ import annotations

import pytest

from formulacode_dagster.models.measurement import Measurement, Verdict
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.releasing.registries.checks import every_digest_pulled

MONTH = "2026-02"


def test_images_that_came_back_as_measured_pass(published: PublishedImage, measurement: Measurement) -> None:
    verdict = every_digest_pulled(MONTH, [published], [measurement])
    assert verdict.passed
    assert verdict.figures["published"] == 1


def test_nothing_published_passes_and_says_so(measurement: Measurement) -> None:
    verdict = every_digest_pulled(MONTH, [], [measurement])
    assert verdict.passed
    assert "nothing was published" in verdict.summary


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pulled_digest": "sha256:other"}, "came back as sha256:other"),
        ({"pulled_digest": ""}, "came back as nothing"),
        ({"digest": "", "pulled_digest": ""}, "has no digest"),
        ({"image_digest": "sha256:other"}, "measured was"),
        ({"number": 8}, "without being measured"),
        ({"month": "2026-01"}, "belongs to 2026-01"),
    ],
)
def test_a_false_claim_about_an_image_fires(
    published: PublishedImage, measurement: Measurement, changes: dict[str, object], said: str
) -> None:
    verdict = every_digest_pulled(MONTH, [published.model_copy(update=changes)], [measurement])
    assert not verdict.passed
    assert any(said in offender for offender in verdict.offenders)


def test_an_image_published_without_a_speed_up_fires(published: PublishedImage, measurement: Measurement) -> None:
    slow = measurement.model_copy(update={"verdict": Verdict.SLOWER})
    assert not every_digest_pulled(MONTH, [published], [slow]).passed


def test_one_name_for_two_images_fires(published: PublishedImage, measurement: Measurement) -> None:
    verdict = every_digest_pulled(MONTH, [published, published], [measurement])
    assert verdict.offenders == (f"{published.reference} names two images",)
