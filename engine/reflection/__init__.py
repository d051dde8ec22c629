"""Beyond the verdict: what each finding weighs, what to read next, what the verdict hangs on."""
