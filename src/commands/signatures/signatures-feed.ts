import type { KeyObject } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { Software } from '../../classify/known/software.ts'
import { softwareDocument } from '../../classify/known/software-document.ts'
import { Fault } from '../../shared/fault.ts'
import {
  type Feed,
  FeedFault,
  feedKeyOf,
  makeFeedPrivateKey,
  openFeed,
  parseFeedKey,
  parseFeedPrivateKey,
  signFeed,
} from '../../plane/feed.ts'
import { parseDurationMs } from '../../policy/duration.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode, Option } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { many } from '../../runtime/signatures/signature-options.ts'

export const feedKey: CommandAction = {
  name: 'feed-key',
  summary: 'Make a key to sign feeds, and print its public part',
  description: [
    'Writes a private key (Ed25519, PEM) that only its owner can read, and never overwrites a file. Prints the public ' +
      'key, which operators put under "public_keys". Anyone with the private key can publish in your name.',
  ],
  operands: [{ name: 'FILE', description: 'The file to write the private key to' }],
  options: [{ name: 'public', description: 'Only print the public key of the existing FILE' }],
  examples: [{ command: 'signatures feed-key feed.key', description: 'Once, before the first feed' }],
  run: runFeedKey,
}

/** Options of `signatures export` for making a feed. */
export const FEED_OPTIONS: readonly Option[] = [
  {
    name: 'sign',
    value: 'FILE',
    description: 'Make a signed feed, with a private key that "feed-key" made; may be repeated',
  },
  { name: 'name', value: 'NAME', description: 'Of a feed: its name, which is the same for those who use it' },
  {
    name: 'version',
    value: 'N',
    description: 'Of a feed: a whole number that increases with each version (default: seconds since 1970)',
  },
  {
    name: 'expires',
    value: 'WHEN',
    description: 'Of a feed: when it expires, 30d or 2027-01-31T12:00:00Z (default: never)',
  },
]

export const feedVerify: CommandAction = {
  name: 'feed-verify',
  summary: 'Show what a feed contains, and verify its signature',
  operands: [{ name: 'FILE', description: 'A feed' }],
  options: [
    { name: 'key', value: 'KEY', description: 'A public key, ed25519:…; may be repeated' },
    { name: 'name', value: 'NAME', description: 'The expected name of the feed' },
  ],
  examples: [
    {
      command: 'signatures feed-verify acme.json --name acme --key ed25519:…',
      description: 'Before you use it',
    },
  ],
  run: runFeedVerify,
}

async function runFeedKey(given: Arguments, io: Io): Promise<ExitCode> {
  const file = given.operands[0]!
  const key = given.flag('public') ? await privateKeyIn(file, io) : await newPrivateKey(file)
  io.stdout.write(`${feedKeyOf(key).text}\n`)
  return 0
}

async function newPrivateKey(file: string): Promise<KeyObject> {
  const pem = makeFeedPrivateKey()
  try {
    await writeFile(file, pem, { flag: 'wx', mode: OWNER_ONLY, flush: true })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new Fault('FEED_KEY_EXISTS', `${file} is there already, and stays as it is`)
    throw unwritable(file, error)
  }
  return parseFeedPrivateKey(pem)
}

/** The list as a feed, signed with the keys of `--sign`. */
export async function signedFeed(
  list: readonly Software[],
  given: Arguments,
  io: Io,
): Promise<{ text: string; summary: string }> {
  const nowMs = Date.now()
  const name = needed(given, 'name')
  const version = given.value('version') ?? String(Math.floor(nowMs / 1000))
  if (!NAME.test(name))
    throw new Fault(USAGE, '--name must have at most 64 letters, digits, and . _ - between them')
  if (!/^[1-9]\d{0,14}$/.test(version)) throw new Fault(USAGE, '--version must be a whole number from 1')
  const expires = expiryOf(given.value('expires'), nowMs)
  const keys = await Promise.all(given.values('sign').map((file) => privateKeyIn(file, io)))
  const created = new Date(nowMs).toISOString()
  const software = list.map(softwareDocument)
  const text = signFeed({ name, version: Number(version), created, expires, software }, keys)
  if (Buffer.byteLength(text) > BYTES_USUAL)
    io.stderr.write(`warning: it is longer than 4 MiB, which gateways take only where bytes_max allows it\n`)
  return { text, summary: summaryOf(openFeed(Buffer.from(text), name, keys.map(feedKeyOf))) }
}

async function runFeedVerify(given: Arguments, io: Io): Promise<ExitCode> {
  const name = needed(given, 'name')
  needed(given, 'key')
  const keys = given.values('key').map(parseFeedKey)
  const file = given.operands[0]!
  const envelope = await readFile(file).catch((error) => {
    throw unreadable(file, error)
  })
  try {
    io.stdout.write(`${summaryOf(openFeed(envelope, name, keys))}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof FeedFault)) throw error
    for (const line of error.message.split('\n')) io.stderr.write(`${file}: ${line}\n`)
    return 1
  }
}

function summaryOf({ name, version, createdMs, expiresMs, software }: Feed): string {
  const expires = expiresMs === Number.POSITIVE_INFINITY ? 'never' : new Date(expiresMs).toISOString()
  const entries = `${software.length} software with ${many(
    software.reduce((sum, { signatures }) => sum + signatures.length, 0),
    'signature',
  )}`
  return `${name}: version ${version}, made ${new Date(createdMs).toISOString()}, expires ${expires}: ${entries}`
}

function needed(given: Arguments, option: string): string {
  const value = given.value(option)
  if (value !== null) return value
  throw new Fault(USAGE, `--${option} is missing`)
}

/** A duration counts from now. A time is validated when the feed is made. */
function expiryOf(text: string | null, nowMs: number): string | null {
  const durationMs = text === null ? null : parseDurationMs(text)
  if (durationMs === null) return text
  if (durationMs === 0 || durationMs > DURATION_MS_MAX)
    throw new Fault(USAGE, '--expires must be more than 0 and at most 10 years')
  return new Date(nowMs + durationMs).toISOString()
}

async function privateKeyIn(file: string, io: Io): Promise<KeyObject> {
  try {
    const { mode } = await stat(file)
    if ((mode & READABLE_BY_OTHERS) !== 0)
      io.stderr.write(`warning: every user on this machine can read ${file}\n`)
    return parseFeedPrivateKey(await readFile(file, 'utf8'))
  } catch (error) {
    if (error instanceof Fault) throw new Fault(error.code, `${file} ${error.message}`, { cause: error })
    throw unreadable(file, error)
  }
}

/** Writes the file atomically. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}`
  try {
    await writeFile(draft, text, { flag: 'wx', flush: true })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw unwritable(file, error)
  }
}

function unreadable(file: string, error: unknown): Fault {
  const { code } = error as NodeJS.ErrnoException
  return new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
}

function unwritable(file: string, error: unknown): Fault {
  const { code } = error as NodeJS.ErrnoException
  return new Fault('FILE_UNWRITABLE', `${file} cannot be written (${code})`, { cause: error })
}

const OWNER_ONLY = 0o600
const READABLE_BY_OTHERS = 0o004
/** The same rule as in settings. */
const NAME = /^\w(?:[\w.-]{0,62}\w)?$/
/** The default of `bytes_max`. */
const BYTES_USUAL = 4 * 1024 * 1024
const DURATION_MS_MAX = 3650 * 86_400_000
