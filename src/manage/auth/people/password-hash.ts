import {
  argon2,
  type Argon2Algorithm,
  type Argon2Parameters,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { promisify } from 'node:util'
import { Fault } from '../../../shared/fault.ts'

/** What is wrong with a password. `null`: valid. */
export function passwordProblem(password: string): string | null {
  const text = password.normalize('NFC')
  if (!text.isWellFormed()) return 'is not valid Unicode text'
  // Count bytes first: cheap for very long input.
  if (Buffer.byteLength(text) > BYTES_MAX) return `has more than ${BYTES_MAX} bytes`
  return [...text].length < CHARACTERS_MIN ? `has fewer than ${CHARACTERS_MIN} characters` : null
}

/**
 * Hashes passwords with argon2id (RFC 9106). A hash costs time and memory on purpose, so this limits how many
 * run and wait at once.
 */
export class PasswordHasher {
  readonly #derive: Derive
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** `derive`: replaces Node's argon2 in tests. */
  constructor(derive: Derive = promisify(argon2)) {
    this.#derive = derive
  }

  /**
   * The stored hash. It contains its parameters, so that they can be raised later. Throws a Fault if too many
   * wait.
   */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES)
    return textOf({ ...NOW, salt, tag: await this.#tag(password, { ...NOW, salt, length: TAG_BYTES }) })
  }

  /** Takes the same time if `stored` is `null`. Throws a Fault if too many wait. */
  async isRight(password: string, stored: string | null): Promise<boolean> {
    const { tag, ...parameters } = stored === null ? NO_ACCOUNT : parsed(stored)
    const actual = await this.#tag(password, { ...parameters, length: tag.length })
    return timingSafeEqual(actual, tag) && stored !== null
  }

  async #tag(password: string, { memoryKiB, passes, lanes, salt, length }: Hashing): Promise<Buffer> {
    await this.#turn()
    try {
      return await this.#derive('argon2id', {
        message: password.normalize('NFC'),
        nonce: salt,
        memory: memoryKiB,
        passes,
        parallelism: lanes,
        tagLength: length,
      })
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < AT_ONCE) {
      this.#running++
      return
    }
    if (this.#waiting.length >= WAITING_MAX)
      throw new Fault('PASSWORDS_TOO_MANY', 'too many passwords are being checked')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    await promise
  }
}

/** Whether the hash was made with other parameters than the current ones. */
export function isOutdated(stored: string): boolean {
  const { memoryKiB, passes, lanes } = parsed(stored)
  return memoryKiB !== NOW.memoryKiB || passes !== NOW.passes || lanes !== NOW.lanes
}

type Derive = (algorithm: Argon2Algorithm, parameters: Argon2Parameters) => Promise<Buffer>

interface Parameters {
  readonly memoryKiB: number
  readonly passes: number
  readonly lanes: number
}

interface Stored extends Parameters {
  readonly salt: Buffer
  readonly tag: Buffer
}

interface Hashing extends Parameters {
  readonly salt: Buffer
  readonly length: number
}

/** The PHC string format, which other programs use too. */
function textOf({ memoryKiB, passes, lanes, salt, tag }: Stored): string {
  const parameters = `m=${memoryKiB},t=${passes},p=${lanes}`
  return `$argon2id$v=19$${parameters}$${base64(salt)}$${base64(tag)}`
}

function parsed(stored: string): Stored {
  const [, memory, passes, lanes, salt = '', tag = ''] = FORM.exec(stored) ?? []
  const found = { memoryKiB: Number(memory), passes: Number(passes), lanes: Number(lanes) }
  // A modified database must not make this process use up its memory.
  if (tag === '' || found.memoryKiB > MEMORY_KIB_MAX || found.passes > PASSES_MAX)
    throw new Fault('STORE_DAMAGED', 'a password hash in the database is corrupt')
  return { ...found, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

/** NIST SP 800-63B requires a minimum length and no other rules. */
const CHARACTERS_MIN = 12
const BYTES_MAX = 1_024
/** Memory and passes of the second choice in RFC 9106 §4. One lane, because several hashes run at once. */
const NOW: Parameters = { memoryKiB: 65_536, passes: 3, lanes: 1 }
const SALT_BYTES = 16
const TAG_BYTES = 32
/** Matches no password. */
const NO_ACCOUNT: Stored = { ...NOW, salt: Buffer.alloc(SALT_BYTES), tag: Buffer.alloc(TAG_BYTES) }
const FORM =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=([1-9]\d?)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/
const MEMORY_KIB_MAX = 262_144
const PASSES_MAX = 20
/** Of the four threads in Node's pool, which also serve file access and DNS. */
const AT_ONCE = 2
/** About five seconds of work. */
const WAITING_MAX = 50
