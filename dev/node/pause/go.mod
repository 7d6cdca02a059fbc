module scalabletopics.io/dev/node/pause

go 1.26.0
