module pause

go 1.26.0

tool pause
