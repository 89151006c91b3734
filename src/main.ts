import { runCli } from './commands/cli.ts'
import { COMMANDS } from './commands/commands.ts'
import { processIo } from './terminal/io.ts'

// Secrets may be in variables: a report that an operator has asked Node for is shown to others.
process.report.excludeEnv = true

// `gatehouse analyze capture.pcap | head`: the reader has enough, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

// A command that has something to finish listens itself. The others end at once, also as a container's first
// process, which without a listener would ignore the signal.
for (const [signal, exitCode] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => {
    if (process.listenerCount(signal) === 0) process.exit(exitCode)
  })
}

void runCli(COMMANDS, process.argv.slice(2), processIo()).then((exitCode) => {
  process.exitCode = exitCode
})
