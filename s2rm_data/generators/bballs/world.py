"""The world of bouncing balls, as the stages see it. Cheap to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s2rm_data.generators.bballs.general import options as general
from s2rm_data.options import Option, integer, one_of, span, whole, whole_numbers
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
    Option(
        name="radius",
        parse=general.radius,
        metavar="NUMBER[-NUMBER]",
        help="Ball radius in pixels, or a range from which each ball draws its own: 3-6.",
        shown="the preset's",
    ),
    Option(
        name="speed",
        parse=span,
        metavar="NUMBER[-NUMBER]",
        help="Speed of a ball in pixels per frame: 2, or a range 2-4.",
        shown="the preset's",
    ),
    Option(
        name="gravity",
        parse=general.gravity,
        metavar="[X,]Y",
        help="Gravity in pixels per frame², downwards, or as x,y.",
        shown="none",
    ),
    Option(
        name="mass",
        parse=general.mass,
        metavar="equal|area|NUMBER-NUMBER",
        help="Masses: all equal, by area, or a range from which each ball draws its own.",
        shown="by area",
    ),
    Option(
        name="fixed",
        parse=general.fixed,
        metavar="N|X,Y[,R];...",
        help="Fixed balls: how many, at random places that --seed decides, or where, in pixels; or none.",
        shown="one in the centre",
    ),
    Option(
        name="walls",
        parse=general.lists((4,), "x0,y0,x1,y1 of an inner wall"),
        metavar="X0,Y0,X1,Y1;...",
        help="Inner walls in pixels.",
        shown="none",
    ),
    Option(
        name="render",
        parse=one_of("binary", "grey", "colour"),
        metavar="binary|grey|colour",
        help="Frames of one bit per pixel, or smooth in grey or colour; models train on binary frames.",
        shown="binary",
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
      s2rm-data bballs --gravity 0.1 --radius 3-6 --walls "4,30,20,36" -o falling.zarr
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
