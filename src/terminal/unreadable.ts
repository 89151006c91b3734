import { Fault } from '../shared/fault.ts'

/** Turns an error from opening or reading a file into a message for the person who named the file. */
export function unreadable(error: unknown): Fault {
  const { code, message } = error as NodeJS.ErrnoException
  return new Fault('UNREADABLE', REASONS.get(code) ?? message, { cause: error })
}

const REASONS: ReadonlyMap<string | undefined, string> = new Map([
  ['ENOENT', 'no such file'],
  ['ENOTDIR', 'no such file'],
  ['EACCES', 'no permission to read it'],
  ['EISDIR', 'is a folder'],
])
