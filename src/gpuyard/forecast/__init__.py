"""When work will start and end: never one moment, always two, the middle and one that is seldom passed; or unknown."""
