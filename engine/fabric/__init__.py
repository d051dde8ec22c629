"""What the fabric looked like and how it changed: groups, links, members, cohorts, pauses."""
