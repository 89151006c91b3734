import { runCli } from './commands/cli.ts'
import { COMMANDS } from './commands/commands.ts'
import { processIo } from './terminal/io.ts'

// Environment variables may contain secrets, and operators pass diagnostic reports on to others.
process.report.excludeEnv = true

// `gatehouse analyze capture.pcap | head`: a reader that closes early is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

// A command with work to finish has its own listener; without one, the process ends at once. The listener
// here is needed for the first process of a container, which would otherwise ignore the signal.
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
