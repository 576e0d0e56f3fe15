import numpy as np

from s2rm_data.generators.bballs.inspection.ball_inspection import contact_sheet, frames_with_crops, sample_positions
from s2rm_data.generators.bballs.inspection.ball_scene import crops_of


def crop(frame, centre):
    return crops_of(frame[None], centre[None, None])[0, 0]


def test_a_crop_is_zero_outside_the_arena() -> None:
    frame = np.ones((48, 48), dtype=np.uint8)
    corner = crop(frame, np.array([0, 0]))
    assert corner.shape == (11, 11)
    assert corner.sum() == 36
    assert corner[5:, 5:].all()


def test_a_crop_has_its_pixel_in_the_middle() -> None:
    frame = np.zeros((48, 48), dtype=np.uint8)
    frame[20, 7] = 1  # row 20, column 7: x = 7, y = 20
    assert crop(frame, np.array([7, 20]))[5, 5] == 1


def test_positions_are_pixels_of_the_arena() -> None:
    positions = sample_positions(np.random.default_rng(0), 200, 48)
    assert positions.shape == (200, 10, 2)
    assert (positions.min(), positions.max()) == (0, 47)


def test_what_a_crop_shows_is_bright_and_the_rest_is_dim() -> None:
    sequence = np.ones((1, 48, 48), dtype=np.uint8)
    (picture,) = frames_with_crops(sequence, np.array([[[24, 24]]]), scale=4)
    pixels = np.asarray(picture)
    assert (pixels[24 * 4 + 2, 24 * 4 + 2] == 255).all()
    assert (pixels[2, 2] < 100).all()


def test_a_contact_sheet_has_a_row_a_sequence() -> None:
    sequences = [np.zeros((20, 48, 48), dtype=np.uint8)] * 3
    positions = [sample_positions(np.random.default_rng(i), 20, 48) for i in range(3)]
    sheet = contact_sheet(sequences, positions, ["#0", "#1", "#2"], columns=4, scale=2)
    assert sheet.height == 22 + 3 * 102 + 18  # heads, rows, legend
    assert sheet.width > 4 * 102
