"""From raw model outputs to segments: decoding, suppression of duplicates, and the Localizer that users call."""
