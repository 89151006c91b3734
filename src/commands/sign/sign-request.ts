import { randomBytes } from 'node:crypto'
import { request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Fault } from '../../shared/fault.ts'
import { contentDigestOf, signAsAgent } from '../../identity/keys/request-signer.ts'
import type { SignedRequest } from '../../identity/signature/signature-base.ts'
import { parseDurationMs } from '../../policy/duration.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { signingKeysIn } from '../../runtime/signing-key-file.ts'
import { visible } from '../../terminal/table.ts'
import { unreadable } from '../../terminal/unreadable.ts'

export const signOne: CommandAction = {
  name: 'request',
  summary: 'Sign a request as an agent does, and print it or send it',
  description: [
    'Without --as, prints the headers that sign the request. The signature covers @authority, Signature-Agent, and what ' +
      '--cover adds: @method, @target-uri, @path, @query, content-digest (computed from the body), or a header of the ' +
      'request; "name;key=member" covers one member of a header.',
    'To test that a server rejects bad signatures: --created in the past or the future, --no-expires, the same --nonce ' +
      'twice, --authority of another host, another --tag or --algorithm.',
  ],
  operands: [{ name: 'URL', description: 'The URL to request' }],
  options: [
    {
      name: 'key',
      value: 'FILE',
      description: 'The key file, as "sign key" makes it; of several keys, the first signs',
    },
    {
      name: 'agent',
      value: 'URL',
      description: 'The origin of the signer, which has the key directory, like https://agent.example',
    },
    { name: 'method', value: 'NAME', description: 'The method', default: 'GET' },
    {
      name: 'header',
      short: 'H',
      value: 'NAME: VALUE',
      description: 'A header of the request; may be repeated',
    },
    { name: 'body', value: 'FILE', description: 'The body to send; adds its Content-Digest' },
    { name: 'cover', value: 'COMPONENT', description: 'Another component to sign; may be repeated' },
    {
      name: 'form',
      value: 'FORM',
      description: 'The form of Signature-Agent: of the current draft, or of older ones',
      choices: ['dictionary', 'string'],
      default: 'dictionary',
    },
    {
      name: 'created',
      value: 'WHEN',
      description: 'The creation time: seconds since 1970, or relative to now, like --created=-10m',
    },
    { name: 'expires', value: 'DURATION', description: 'How long it is valid', default: '5m' },
    { name: 'no-expires', description: 'Leave out the expiry' },
    { name: 'nonce', value: 'TEXT', description: 'A nonce instead of a random one' },
    { name: 'no-nonce', description: 'Leave out the nonce' },
    { name: 'tag', value: 'TEXT', description: 'The tag', default: 'web-bot-auth' },
    { name: 'authority', value: 'HOST', description: 'Sign for another host than the one in the URL' },
    {
      name: 'as',
      value: 'FORM',
      description: 'The output format',
      choices: ['headers', 'json', 'curl'],
      default: 'headers',
    },
    { name: 'send', description: 'Send it, and print the answer: exit code 1 for 400 and above' },
    {
      name: 'ca',
      value: 'FILE',
      description: 'With --send: trust this CA (PEM) instead of those of the system',
    },
  ],
  examples: [
    {
      command: 'sign request https://localhost:8443/ --key agent.jwk --agent http://127.0.0.1:7000',
      description: 'Print the headers',
    },
    {
      command:
        'sign request https://localhost:8443/ --key agent.jwk --agent http://127.0.0.1:7000 --send --ca data/dev-ca/ca.pem',
      description: 'Send it to a gateway on this machine',
    },
  ],
  run,
}

interface Made {
  readonly url: URL
  readonly method: string
  /** Names and values alternate. */
  readonly headers: readonly string[]
  readonly body: Buffer | null
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const made = await signed(given)
  if (given.flag('send')) return send(made, given.value('ca'), io)
  io.stdout.write(shown(made, given.value('as') as 'headers' | 'json' | 'curl'))
  return 0
}

async function signed(given: Arguments): Promise<Made> {
  const [file, agent] = [needed(given, 'key'), needed(given, 'agent')]
  const [key] = await signingKeysIn(file)
  const url = URL.parse(given.operands[0]!)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Fault(USAGE, 'URL must be http:// or https://')
  const method = needed(given, 'method')
  if (!TOKEN.test(method)) throw new Fault(USAGE, '--method is not a valid HTTP method')
  const body = await bodyIn(given.value('body'))
  const own = given.values('header').flatMap(headerIn)
  const digest = body === null ? [] : ['Content-Digest', contentDigestOf(body)]
  const rawHeaders = [...own, ...digest]
  const request: SignedRequest = {
    base: `${url.protocol}//${given.value('authority') ?? url.host}`,
    method,
    target: url.pathname + url.search,
    rawHeaders,
  }
  const createdS = createdIn(given.value('created'))
  const form = given.value('form') as 'dictionary' | 'string'
  const components = [
    '@authority',
    form === 'string' ? 'signature-agent' : 'signature-agent;key=sig1',
    ...given.values('cover'),
  ]
  const nonce = given.flag('no-nonce')
    ? null
    : (given.value('nonce') ?? randomBytes(24).toString('base64url'))
  const expiresS = given.flag('no-expires') ? null : createdS + lifeIn(given.value('expires')!)
  const wanted = { agent, form, components, createdS, expiresS, nonce, tag: given.value('tag') }
  return { url, method, body, headers: [...rawHeaders, ...signAsAgent(request, wanted, key)] }
}

function needed(given: Arguments, name: string): string {
  const value = given.value(name)
  if (value === null) throw new Fault(USAGE, `--${name} is missing`)
  return value
}

function headerIn(line: string): readonly string[] {
  const [, name, value] = HEADER.exec(line) ?? []
  if (name === undefined || value === undefined) throw new Fault(USAGE, '--header must be NAME: VALUE')
  return [name, value]
}

async function bodyIn(file: string | null): Promise<Buffer | null> {
  if (file === null) return null
  return readFile(file).catch((error) => {
    throw new Fault('FILE_UNREADABLE', `${file}: ${unreadable(error).message}`)
  })
}

function createdIn(when: string | null): number {
  const nowS = Math.floor(Date.now() / 1000)
  if (when === null) return nowS
  if (/^\d{1,12}$/.test(when)) return Number(when)
  const [, sign, duration] = /^([+-])(.+)$/.exec(when) ?? []
  const ms = duration === undefined ? null : parseDurationMs(duration)
  if (ms === null) throw new Fault(USAGE, '--created must be seconds since 1970, or -10m, +1h')
  return nowS + (sign === '-' ? -1 : 1) * Math.round(ms / 1000)
}

function lifeIn(text: string): number {
  const ms = parseDurationMs(text)
  if (ms === null) throw new Fault(USAGE, '--expires must be a duration, like 5m')
  return Math.round(ms / 1000)
}

function shown({ url, method, headers, body }: Made, form: 'headers' | 'json' | 'curl'): string {
  const lines = pairs(headers)
  if (form === 'json') return `${JSON.stringify({ method, url: url.href, headers: lines }, null, 2)}\n`
  if (form === 'headers') return lines.map(([name, value]) => `${name}: ${value}\n`).join('')
  const more = [
    ...(method === 'GET' ? [] : ['-X', method]),
    ...(body === null ? [] : ['--data-binary', '@-']),
  ]
  const parts = ['curl', ...more, ...lines.flatMap(([name, value]) => ['-H', `${name}: ${value}`]), url.href]
  return `${parts.map(quoted).join(' ')}\n`
}

async function send({ url, method, headers, body }: Made, caFile: string | null, io: Io): Promise<ExitCode> {
  const ca = await bodyIn(caFile)
  const { promise, resolve, reject } = Promise.withResolvers<ExitCode>()
  const ask = url.protocol === 'https:' ? secureRequest : plainRequest
  const asked = ask(url, {
    method,
    headers: ['Host', url.host, ...headers, ...lengthOf(body)],
    ...(ca && { ca }),
  })
  asked.on('error', (error: NodeJS.ErrnoException) =>
    reject(new Fault('NOT_SENT', `${url.host}: ${error.code ?? error.message}`, { cause: error })),
  )
  asked.setTimeout(TIMEOUT_MS, () => asked.destroy(new Error('it has not answered in time')))
  asked.on('response', async (response) => {
    const { statusCode = 0, rawHeaders } = response
    io.stdout.write(`${statusCode}\n`)
    for (const [name, value] of pairs(rawHeaders)) io.stdout.write(`${visible(name)}: ${visible(value)}\n`)
    const answer = await text(response).catch(() => '')
    io.stdout.write(`\n${answer.slice(0, SHOWN_MAX)}${answer.endsWith('\n') ? '' : '\n'}`)
    resolve(statusCode >= 400 ? 1 : 0)
  })
  asked.end(body ?? undefined)
  return promise
}

function lengthOf(body: Buffer | null): readonly string[] {
  return body === null ? [] : ['Content-Length', String(body.length)]
}

function pairs(flat: readonly string[]): [name: string, value: string][] {
  const found: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2) found.push([flat[i]!, flat[i + 1]!])
  return found
}

/** Quotes for a shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

const TOKEN = /^[!#$%&'*+.^_`|~\w-]{1,64}$/
const HEADER = /^([!#$%&'*+.^_`|~\w-]{1,128}):[ \t]*(?![ \t])([^\r\n\0]*)$/
const TIMEOUT_MS = 30_000
const SHOWN_MAX = 65_536
