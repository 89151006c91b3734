import { readFileSync } from 'node:fs'
import { CLIENT_VARIABLES } from '../config/layers.ts'
import { Fault } from '../shared/fault.ts'
import { USAGE } from '../terminal/arguments.ts'
import type { Arguments, Option } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** The options of commands that query a running Gatehouse, on this machine or another. */
export const RUNNING_OPTIONS: readonly Option[] = [
  {
    name: 'url',
    value: 'URL',
    description: 'The URL of its management port (or GATEHOUSE_URL)',
  },
  { name: 'key-file', value: 'FILE', description: 'A file with the key in its first line' },
]

/** Without a trailing slash. */
export function urlGiven(given: Arguments, io: Io): URL {
  const text = given.value('url') ?? io.env[CLIENT_VARIABLES.url] ?? DEFAULT_URL
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.username !== '')
    throw new Fault(USAGE, `--url must be http://HOST:PORT or https://HOST, not "${text}"`)
  url.pathname = url.pathname.replace(/\/$/, '')
  return url
}

export function keyGiven(given: Arguments, io: Io): string {
  const file = given.value('key-file')
  const key = file === null ? io.env[CLIENT_VARIABLES.key] : firstLine(file)
  if (key === undefined || key === '')
    throw new Fault(USAGE, file === null ? 'give --key-file, or GATEHOUSE_KEY' : `${file} has no key in it`)
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Fault(USAGE, 'the key has characters that no key has')
  return key
}

function firstLine(file: string): string {
  try {
    return readFileSync(file, 'utf8').split('\n', 1)[0]!.trim()
  } catch (error) {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  }
}

const DEFAULT_URL = 'http://127.0.0.1:9080'
