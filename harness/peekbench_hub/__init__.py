"""The Hub, as the plugins that download from it ask it. A library: it registers nothing."""
