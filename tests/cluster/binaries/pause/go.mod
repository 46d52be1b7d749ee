module ai-factory.invalid/pause

go 1.25.0
