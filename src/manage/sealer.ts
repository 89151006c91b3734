import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '../fault.ts'
import { Secret } from '../secret.ts'

/**
 * Encrypts what has to be kept in the database and be known again, with a key that is not in it (AES-256-GCM): who has a
 * copy of the database alone has no secret. The key is a setting, which all processes on one database share, or a file
 * in the data folder, made when it is first needed.
 */
export class Sealer {
  readonly #given: Secret<string> | null
  readonly #file: string
  #key: Promise<SealKey> | null = null

  constructor(given: Secret<string> | null, file: string) {
    this.#given = given
    this.#file = file
  }

  /** Which key it is, where one is given: all processes on one database have to have the same. */
  get givenKey(): string | null {
    return this.#given === null ? null : sealKey(this.#given.reveal(), '').id
  }

  /** `what` it is, and of whom: it cannot be opened as anything else. */
  async seal(text: string, what: string): Promise<string> {
    const { id, bytes } = await this.#sealKey('make')
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', bytes, nonce).setAAD(Buffer.from(what))
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return [FORM, id, sealed.toString('base64url')].join('.')
  }

  /** Throws a Fault where it was sealed with another key, or as something else, or was changed. */
  async open(sealed: string, what: string): Promise<Secret<string>> {
    const [form, id, text, ...more] = sealed.split('.')
    const bytes = Buffer.from(text ?? '', 'base64url')
    if (form !== FORM || more.length > 0 || bytes.length < NONCE_BYTES + TAG_BYTES)
      throw new Fault('SEAL_BROKEN', 'what is in the place of a secret in the database is none')
    const key = await this.#sealKey('find')
    if (key.id !== id)
      throw new Fault(
        'SEAL_KEY_WRONG',
        `a secret in the database is sealed with another key (${id}) than ${key.name}`,
      )
    const end = bytes.length - TAG_BYTES
    const decipher = createDecipheriv('aes-256-gcm', key.bytes, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(what))
      .setAuthTag(bytes.subarray(end))
    try {
      const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()])
      return new Secret(opened.toString('utf8'))
    } catch (error) {
      throw new Fault('SEAL_BROKEN', 'a secret in the database has been changed', { cause: error })
    }
  }

  #sealKey(isThere: 'make' | 'find'): Promise<SealKey> {
    this.#key ??= this.#load(isThere).catch((error) => {
      this.#key = null // the disk may be back by the next time
      throw error
    })
    return this.#key
  }

  async #load(isThere: 'make' | 'find'): Promise<SealKey> {
    if (this.#given !== null) return sealKey(this.#given.reveal(), 'store.encryption_key')
    try {
      if (isThere === 'make') await makeKeyFile(this.#file)
      const text = (await readFile(this.#file, 'latin1')).trim()
      if (KEY_TEXT.test(text)) return sealKey(text, this.#file)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new Fault('SEAL_KEY_UNUSABLE', `the key ${this.#file} cannot be used (${code})`, { cause: error })
    }
    throw new Fault('SEAL_KEY_UNUSABLE', `${this.#file} holds no key of ours`)
  }
}

interface SealKey {
  /** Tells it from another, and nothing of it. */
  readonly id: string
  readonly bytes: Buffer
  readonly name: string
}

function sealKey(text: string, name: string): SealKey {
  const bytes = Buffer.from(hkdfSync('sha256', text, '', 'gatehouse: secrets in the store', KEY_BYTES))
  const id = createHash('sha256').update('id').update(bytes).digest('hex').slice(0, ID_LENGTH)
  return { id, bytes, name }
}

/** Whole or not at all, and once: of two processes at the same moment the second finds that of the first. */
async function makeKeyFile(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const handle = await open(draft, 'wx', 0o600)
  try {
    await handle.writeFile(`${randomBytes(KEY_BYTES).toString('base64url')}\n`)
    await handle.sync()
    await link(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
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
