import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '../../shared/fault.ts'
import { Secret, secretLines } from '../../shared/secret.ts'

/**
 * Encrypts secrets that are stored in the database and must be readable again (AES-256-GCM). The keys are
 * outside the database, so a copy of the database alone reveals no secret. The first key of the ring
 * encrypts, all keys decrypt; each value names its key. The ring is a setting that all processes on one
 * database share, or a file in the data folder with one key a line, created on first use.
 */
export class Sealer {
  readonly #file: string
  #given: readonly SealKey[]
  #inFile: { readonly version: string; readonly keys: readonly SealKey[] } | null = null

  constructor(given: readonly Secret<string>[], file: string) {
    this.#file = file
    this.#given = given.map(sealKey)
  }

  /** The ids of the keys from the settings. Empty: the keys are in the file. */
  get givenKeyIds(): readonly string[] {
    return this.#given.map(({ id }) => id)
  }

  /** The ids of all keys, the encrypting key first. Throws a Fault if no key exists. */
  async keyIds(): Promise<readonly string[]> {
    return (await this.#keys()).map(({ id }) => id)
  }

  /** Replaces the keys from the settings. */
  use(given: readonly Secret<string>[]): void {
    this.#given = given.map(sealKey)
  }

  /** Puts a new key at the head of the file. Throws if the settings give the keys. Resolves to the new id. */
  async addKey(): Promise<string> {
    if (this.#given.length > 0)
      throw new Fault(
        'SEAL_KEY_UNUSABLE',
        'the keys are in the settings: add the new key as the first in store.encryption_keys, then run this again without --new-key',
      )
    const before = await this.#keysOfFile('make')
    const text = newKeyText()
    await replaceKeyFile(this.#file, `${[text, ...before.map(({ text }) => text)].join('\n')}\n`)
    return sealKey(new Secret(text)).id
  }

  /** `what`: the purpose and the owner of the text. `open` needs the same value. */
  async seal(text: string, what: string): Promise<string> {
    const [{ id, bytes }] = (await this.#keys('make')) as readonly [SealKey, ...SealKey[]]
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', bytes, nonce).setAAD(Buffer.from(what))
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return sealedPrefix(id) + sealed.toString('base64url')
  }

  /** Throws a Fault if the key is not in the ring, if `what` differs, or if the value was changed. */
  async open(sealed: string, what: string): Promise<Secret<string>> {
    const [form, id, text, ...more] = sealed.split('.')
    const bytes = Buffer.from(text ?? '', 'base64url')
    if (form !== FORM || more.length > 0 || bytes.length < NONCE_BYTES + TAG_BYTES)
      throw new Fault('SEAL_BROKEN', `the stored secret is corrupt: ${what}`)
    const keys = await this.#keys()
    const key = keys.find((each) => each.id === id)
    if (key === undefined) throw this.#unknownKey(id!, what, keys)
    const end = bytes.length - TAG_BYTES
    const decipher = createDecipheriv('aes-256-gcm', key.bytes, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(what))
      .setAuthTag(bytes.subarray(end))
    try {
      const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()])
      return new Secret(opened.toString('utf8'))
    } catch (error) {
      throw new Fault('SEAL_BROKEN', `the stored secret was changed: ${what}`, { cause: error })
    }
  }

  #unknownKey(id: string, what: string, keys: readonly SealKey[]): Fault {
    const place = this.#given.length > 0 ? 'store.encryption_keys' : this.#file
    const known = keys.map((key) => key.id).join(', ')
    // The id can be any part of a value that a browser sent. Show it only if it has the form of a key id.
    const shown = KEY_ID.test(id) ? id : 'unknown'
    return new Fault(
      'SEAL_KEY_WRONG',
      `a stored secret is encrypted with the key ${shown}, which is not in ${place} (${known}): ${what}. Add that key there, or replace the secret`,
    )
  }

  async #keys(isThere: 'make' | 'find' = 'find'): Promise<readonly SealKey[]> {
    return this.#given.length > 0 ? this.#given : this.#keysOfFile(isThere)
  }

  /** Rereads the file when it changes: `gatehouse rekey` may have added a key. */
  async #keysOfFile(isThere: 'make' | 'find'): Promise<readonly SealKey[]> {
    try {
      if (isThere === 'make') await makeKeyFile(this.#file)
      const { ino, size, mtimeNs } = await stat(this.#file, { bigint: true })
      const version = [ino, size, mtimeNs].join()
      if (this.#inFile?.version === version) return this.#inFile.keys
      const lines = secretLines(await readFile(this.#file, 'latin1'))
      if (lines.length > 0 && lines.every((line) => KEY_TEXT.test(line))) {
        this.#inFile = { version, keys: lines.map((line) => sealKey(new Secret(line))) }
        return this.#inFile.keys
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new Fault('SEAL_KEY_UNUSABLE', `cannot read the key file ${this.#file} (${code})`, {
        cause: error,
      })
    }
    throw new Fault('SEAL_KEY_UNUSABLE', `${this.#file} has a line that is not a Gatehouse key`)
  }
}

/** The prefix of every value sealed with this key. */
export function sealedPrefix(keyId: string): string {
  return `${FORM}.${keyId}.`
}

interface SealKey {
  /** Identifies the key and reveals nothing about it. */
  readonly id: string
  readonly bytes: Buffer
  readonly text: string
}

function sealKey(secret: Secret<string>): SealKey {
  const text = secret.reveal()
  const bytes = Buffer.from(hkdfSync('sha256', text, '', 'gatehouse: secrets in the store', KEY_BYTES))
  const id = createHash('sha256').update('id').update(bytes).digest('hex').slice(0, ID_LENGTH)
  return { id, bytes, text }
}

function newKeyText(): string {
  return randomBytes(KEY_BYTES).toString('base64url')
}

/** Atomic. If two processes do this at the same moment, the second uses the file of the first. */
async function makeKeyFile(file: string): Promise<void> {
  if (existsSync(file)) return
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await withDraft(file, `${newKeyText()}\n`, (draft) => link(draft, file)).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  })
}

async function replaceKeyFile(file: string, text: string): Promise<void> {
  try {
    await withDraft(file, text, (draft) => rename(draft, file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('SEAL_KEY_UNUSABLE', `cannot write ${file} (${code})`, { cause: error })
  }
}

async function withDraft(file: string, text: string, put: (draft: string) => Promise<void>): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const handle = await open(draft, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
    await put(draft)
  } finally {
    await handle.close()
    await rm(draft, { force: true })
  }
}

const FORM = 'v1'
const KEY_BYTES = 32
const KEY_TEXT = /^[\w-]{43}$/
const NONCE_BYTES = 12
const TAG_BYTES = 16
const ID_LENGTH = 8
const KEY_ID = /^[0-9a-f]{8}$/
