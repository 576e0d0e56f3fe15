"""Looking at a store without a model: pictures, statistics, copies in other formats. Needs no torch."""
