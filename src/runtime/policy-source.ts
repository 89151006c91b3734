import { ConfigFault } from '../config/source.ts'
import { Fault } from '../shared/fault.ts'
import { unreadable } from '../terminal/unreadable.ts'
import { readBounded } from '../shared/bounded-file.ts'

/** Throws a Fault that names the file. */
export async function textIn(file: string): Promise<string> {
  const bytes = await readBounded(file).catch((error) => {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  })
  return decodedText(bytes, file)
}

/** `name`: where the bytes come from, for the Fault. */
export function decodedText(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigFault([{ where: name, what: 'is not UTF-8 text' }])
  }
}
