import { Fault } from '../shared/fault.ts'
import { readBoundedSync } from '../shared/bounded-file.ts'

/** The text of a configuration file. Throws a Fault. */
export function textIn(file: string): string {
  const bytes = bytesOf(file)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Fault('CONFIG_INVALID', `${file}: is not UTF-8 text`, { cause: error })
  }
}

export function secretIn(file: string): string {
  return bytesOf(file).toString('utf8')
}

function bytesOf(file: string): Buffer {
  try {
    return readBoundedSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault(
      'CONFIG_UNREADABLE',
      `${file}: ${READ_FAULTS.get(code ?? '') ?? `cannot be read (${code})`}`,
    )
  }
}

const READ_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
  ['EFBIG', 'is larger than 16 MiB'],
])
