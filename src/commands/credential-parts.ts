import { readFile } from 'node:fs/promises'
import { Fault } from '../fault.ts'
import { Secret, secretLines } from '../secret.ts'
import type { Part } from './reload.ts'

/** What secrets in the database are encrypted with, where the settings name a file of keys. */
export class EncryptionKeyPart implements Part<readonly Secret<string>[]> {
  readonly what = 'encryption-keys'
  readonly #file: string
  readonly #use: (keys: readonly Secret<string>[]) => void

  constructor(file: string, use: (keys: readonly Secret<string>[]) => void) {
    this.#file = file
    this.#use = use
  }

  async files(): Promise<readonly string[]> {
    return [this.#file]
  }

  async load(): Promise<readonly Secret<string>[]> {
    const lines = secretLines(await textOf(this.#file))
    if (lines.length === 0) throw new Fault('ENCRYPTION_KEYS_INVALID', `${this.#file} has no key in it`)
    if (lines.some((line) => line.length < KEY_LENGTH_MIN))
      throw new Fault(
        'ENCRYPTION_KEYS_INVALID',
        `${this.#file} has a key of fewer than ${KEY_LENGTH_MIN} characters, which could be guessed: one key a line`,
      )
    return lines.map((line) => new Secret(line, this.#file))
  }

  use(keys: readonly Secret<string>[]): void {
    this.#use(keys)
  }
}

/** `null`: the keys are in no file that could change. */
export function encryptionKeyPart(
  keys: readonly Secret<string>[],
  use: (keys: readonly Secret<string>[]) => void,
): EncryptionKeyPart | null {
  const file = keys[0]?.file ?? null
  return file === null ? null : new EncryptionKeyPart(file, use)
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
  }
}

/** As the setting has it. */
const KEY_LENGTH_MIN = 16
