"""The world of bouncing balls, as the stages see it. Cheap to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s2rm_data.options import Option, integer, number, span, whole, whole_numbers
from s2rm_data.schema import SplitSource
from s2rm_data.world import Making, World

if TYPE_CHECKING:
    from s2rm_data.evaluation.world import WorldEvaluation
    from s2rm_data.inspection.world import Inspection
    from s2rm_data.learning import Learning
    from s2rm_data.schema import SplitSource

OPTIONS = (
    Option(
        name="balls",
        parse=whole_numbers,
        metavar="NUMBERS",
        default="1-6",
        help="Numbers of balls of the test sets: 3, 1-6 or 1,3-5.",
    ),
    Option(
        name="train_balls",
        parse=whole(1),
        help="Number of balls in training and validation.",
        shown="3 if among --balls, else the smallest",
    ),
    Option(name="train", parse=whole(0), default=20_000, help="Training sequences."),
    Option(name="val", parse=whole(0), default=1_000, help="Validation sequences."),
    Option(name="test", parse=whole(0), default=1_000, help="Test sequences for each number of balls."),
    Option(name="frames", parse=integer, default=100, help="Frames per sequence."),
    Option(name="size", parse=integer, default=48, help="Side of the square arena in pixels."),
    Option(name="preset", default="kvae", help="Named physics: kvae or sutskever."),
    Option(name="radius", parse=number, help="Ball radius in pixels.", shown="the preset's"),
    Option(
        name="speed",
        parse=span,
        metavar="NUMBER[-NUMBER]",
        help="Speed of a ball in pixels per frame: 2, or a range 2-4.",
        shown="the preset's",
    ),
)


class Balls(World):
    name = "bballs"
    title = "Bouncing balls"
    options = OPTIONS
    help = """Generate bouncing-ball videos: balls in a closed box with a fixed ball in its centre.

    The defaults make the paper's data set: 20,000 training and 1,000 validation sequences with 3 balls, and 1,000
    test sequences for each of 1 to 6 balls, 100 frames of 48x48 pixels each. A run that was interrupted resumes where
    it stopped when the same command is given again.

    \b
    Examples:
      s2rm-data bballs                               # the whole data set, to data.zarr
      s2rm-data bballs --balls 3 --train 100 --val 10 --test 10 -o small.zarr
      s2rm-data bballs --balls 1-6 --dry-run         # how much would that be?
      s2rm-data bballs --balls 7,8 --train 0 --val 0 # add two test sets
    """

    def plan(self, **options: Any) -> Making:
        from s2rm_data.generators.bballs.source import plan

        return Making(splits=plan(**options))

    def split_from(self, settings: dict[str, Any], count: int) -> SplitSource:
        from s2rm_data.generators.bballs.source import split_from_settings

        return split_from_settings(settings, count)

    def learning(self) -> Learning:
        from s2rm_data.generators.bballs.learning import LEARNING

        return LEARNING

    def inspection(self) -> Inspection:
        from s2rm_data.generators.bballs.inspection import BallInspection

        return BallInspection()

    def evaluation(self) -> WorldEvaluation:
        from s2rm_data.generators.bballs.evaluation import BallEvaluation

        return BallEvaluation(self)


WORLD = Balls()
