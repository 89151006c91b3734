import { constants } from 'node:fs'
import { chmod, open, rename, rm } from 'node:fs/promises'
import { Fault } from '../shared/fault.ts'
import {
  readSigningKeys,
  type SigningKey,
  type SigningKeys,
  signingKeysText,
} from '../identity/keys/signing-key.ts'
import { unreadable } from '../terminal/unreadable.ts'
import { readBoundedText } from '../shared/bounded-file.ts'

/** Throws a Fault that names the file and reveals nothing of its content. */
export async function signingKeysIn(file: string): Promise<SigningKeys> {
  const text = await readBoundedText(file).catch((error) => {
    const { message } = unreadable(error)
    throw new Fault('FILE_UNREADABLE', `${file}: ${message}`, { cause: error })
  })
  try {
    return readSigningKeys(text)
  } catch (error) {
    throw error instanceof Fault ? new Fault(error.code, `${file} ${error.message}`) : error
  }
}

/** Creates a key file that only its owner can read. Throws a Fault if the file exists. */
export async function makeKeyFile(file: string, keys: readonly SigningKey[]): Promise<void> {
  const handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600).catch(
    (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EEXIST' ? 'is there already' : `cannot be made (${error.code})`
      throw new Fault(error.code === 'EEXIST' ? 'FILE_EXISTS' : 'FILE_UNWRITABLE', `${file} ${why}`)
    },
  )
  try {
    await handle.writeFile(signingKeysText(keys))
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Replaces the file atomically: a concurrent reader gets the old content. */
export async function replaceKeyFile(file: string, keys: readonly SigningKey[]): Promise<void> {
  const draft = `${file}.${process.pid}.new`
  await makeKeyFile(draft, keys)
  try {
    await chmod(draft, 0o600)
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw new Fault(
      'FILE_UNWRITABLE',
      `${file} cannot be replaced (${(error as NodeJS.ErrnoException).code})`,
    )
  }
}
