import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Io } from './io.ts'

/** Shows a text on a terminal page by page, with the program that PAGER names or with less. */
export async function showPaged(text: string, io: Io): Promise<void> {
  const pager = io.env['PAGER'] ?? DEFAULT_PAGER
  if (!io.isTerminal || pager.trim() === '' || !(await isShownBy(pager, text, io))) io.stdout.write(text)
}

/** `false`: the program is missing. */
async function isShownBy(pager: string, text: string, io: Io): Promise<boolean> {
  // A shell, because PAGER may contain arguments: `less -S`.
  const child = spawn(pager, { shell: true, env: { LESS, ...io.env }, stdio: ['pipe', 'inherit', 'ignore'] })
  // A reader that leaves before the end is not a failure.
  child.stdin.on('error', () => undefined)
  child.stdin.end(text)
  // Ctrl-C is for the pager; it decides when to end.
  const ignore = () => undefined
  process.on('SIGINT', ignore)
  const [exitCode] = await once(child, 'close')
  process.off('SIGINT', ignore)
  return exitCode !== COMMAND_NOT_FOUND && exitCode !== NOT_EXECUTABLE
}

const DEFAULT_PAGER = 'less'
/** Colours as they are, leaves if the text fits on the screen, and does not clear the screen. */
const LESS = 'FRX'
/** Exit codes of a shell. */
const COMMAND_NOT_FOUND = 127
const NOT_EXECUTABLE = 126
