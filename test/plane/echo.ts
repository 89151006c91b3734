// The far end of an IPC channel that says back whatever it is told.
process.on('message', (message) => process.send?.(message))
