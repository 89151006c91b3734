import { readBoundedText } from '../shared/bounded-file.ts'
import { Fault } from '../shared/fault.ts'

/** The certificates in a file; `null` without one. Throws a Fault. */
export async function pemIn(file: string | null): Promise<string | null> {
  if (file === null) return null
  const text = await readBoundedText(file).catch((error: NodeJS.ErrnoException) => {
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${error.code})`, { cause: error })
  })
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new Fault('CERTIFICATE_INVALID', `${file} holds no certificate in PEM`)
}
