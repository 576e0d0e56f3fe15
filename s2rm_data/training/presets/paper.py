"""The paper's budget, for a GPU.

Appendix 'Training': Adam 3e-4, halve on a plateau of 0.01% over 5 epochs, 100 epochs, 100 more of fine-tuning. Those
are the defaults of TrainConfig; the models' defaults are the paper's too.
Assumption: windows are whole sequences, ten queries per step, and fine-tuning starts again at the first rate."""

from s2rm_data.training.config import Preset

PRESET = Preset()
