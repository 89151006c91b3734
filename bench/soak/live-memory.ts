import { writeFileSync } from 'node:fs'

/**
 * Loaded into the gateway that is soaked, before anything of its own: at a signal its primary collects all garbage and
 * writes down what is left. What a process has resident says little of one that does little: V8 lets it grow for many
 * minutes before it looks at what has been dropped.
 */
function say(file: string): void {
  globalThis.gc?.({ type: 'major' })
  globalThis.gc?.({ type: 'major' }) // what the first has finalized
  const { heapUsed, external } = process.memoryUsage()
  writeFileSync(file, String(heapUsed + external))
}

const { SOAK_LIVE_FILE: file } = process.env
// Neither the workers nor what starts itself again with another flag. `gc` is there once it serves.
const hasStarted = process.execArgv.some((flag) => flag.includes('semi-space'))
if (file !== undefined && process.argv[2] === 'up' && hasStarted) process.on('SIGUSR2', () => say(file))
