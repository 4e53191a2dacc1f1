"""What a course needs around `eigenlib`: verdicts, lessons, exercises, the report, grading, editions and the command."""
