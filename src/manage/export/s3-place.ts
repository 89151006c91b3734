import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { Agent, request } from 'undici'
import { Fault } from '../../shared/fault.ts'
import { type DraftFile, dayEndMs, type FilePlace } from './file-place.ts'
import {
  type AwsCredentials,
  encodedPath,
  type RequestToSign,
  sha256,
  signatureHeaders,
} from './signature-v4.ts'

export interface S3Settings {
  readonly bucket: string
  /** Of the names of all files; empty, or ends with `/`. */
  readonly prefix: string
  readonly region: string
  /** `null`: AWS. */
  readonly endpoint: string | null
  /** Whether the bucket is in the path instead of the host. */
  readonly isPathStyle: boolean
  /** Files of these may change. Throws a Fault if one cannot be read. */
  readonly credentials: () => Promise<AwsCredentials>
  /** PEM certificates that are trusted instead of the system's. */
  readonly ca: string | null
  /** For files before they are sent. */
  readonly draftFolder: string
  readonly timeoutMs?: number
}

/**
 * Files as objects of a bucket of S3, or of another store with its protocol. An object appears when all of it has arrived. A
 * file is on disk first, because its hash and length go before it.
 */
export class S3Place implements FilePlace {
  readonly #settings: S3Settings
  #closing = new AbortController()
  #agent: Agent | null = null

  constructor(settings: S3Settings) {
    this.#settings = settings
  }

  async begin(): Promise<DraftFile> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController()
    const { draftFolder } = this.#settings
    await mkdir(draftFolder, { recursive: true, mode: 0o700 })
    const path = join(draftFolder, `${process.pid}.tmp`)
    return new S3Draft(path, await open(path, 'w', 0o600), (file) => this.#put(file))
  }

  /** Each app's names are listed in order, so a file of ours that is not old enough ends its list. */
  async forget(beforeMs: number): Promise<void> {
    const { prefix } = this.#settings
    for await (const { names: apps } of this.#pages('app=', '/'))
      for (const app of apps)
        for await (const { names } of this.#pages(app, '')) {
          const ours = names.filter((name) => dayEndMs(name) !== null)
          const old = ours.filter((name) => dayEndMs(name)! <= beforeMs)
          for (const name of old) await this.#delete(`${prefix}${name}`)
          if (old.length < ours.length) break
        }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const agent = this.#agent
    this.#agent = null
    await agent?.destroy()
  }

  async #put({ name, path, bodyHash, length }: FinishedDraft): Promise<void> {
    const headers = { 'content-length': String(length), 'content-type': 'application/vnd.apache.parquet' }
    const url = this.#urlOf(`${this.#settings.prefix}${name}`)
    await this.#ask({ method: 'PUT', url, headers, bodyHash }, createReadStream(path))
  }

  async #delete(key: string): Promise<void> {
    await this.#ask({ method: 'DELETE', url: this.#urlOf(key), headers: {}, bodyHash: NO_BODY })
  }

  /** Names without the prefix that begin with `start`; with `delimiter`, only as far as it. */
  async *#pages(start: string, delimiter: string): AsyncGenerator<{ readonly names: readonly string[] }> {
    const { prefix } = this.#settings
    const [element, inner] = delimiter === '' ? ['Contents', 'Key'] : ['CommonPrefixes', 'Prefix']
    for (let token: string | undefined = ''; token !== undefined; ) {
      const url = this.#urlOf('')
      const query = [
        ...(token === '' ? [] : [['continuation-token', token]]),
        ...(delimiter === '' ? [] : [['delimiter', delimiter]]),
        ...[
          ['list-type', '2'],
          ['prefix', `${prefix}${start}`],
        ],
      ]
      // In the order and the form in which they are signed.
      url.search = query
        .map(([name, value]) => `${name}=${encodedPath(value!).replaceAll('/', '%2F')}`)
        .join('&')
      const answer = await this.#ask({ method: 'GET', url, headers: {}, bodyHash: NO_BODY })
      const found = insidesOf(answer, element!).flatMap((part) => textsOf(part, inner!))
      yield { names: found.flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : [])) }
      // Some stores have an empty element on the last page.
      const next = textsOf(answer, 'NextContinuationToken')[0] || undefined
      if (next !== undefined && next === token)
        throw new Fault('SINK_AWAY', `${url.host} names the same page of a list again`)
      token = next
    }
  }

  /** The answer. Throws a Fault if it is a refusal. */
  async #ask(asked: RequestToSign, sent: Readable | null = null): Promise<string> {
    const { region, ca, credentials, timeoutMs = TIMEOUT_MS } = this.#settings
    const { method, url, bodyHash } = asked
    const headers = { ...asked.headers, 'x-amz-content-sha256': bodyHash }
    const scope = { region, service: 's3', atMs: Date.now() }
    const signature = signatureHeaders({ ...asked, headers }, await credentials(), scope)
    this.#agent ??= new Agent({
      ...(ca === null ? {} : { connect: { ca } }),
      ...{ headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
    })
    const { statusCode, body } = await request(url, {
      method,
      headers: { ...headers, ...signature },
      body: sent,
      dispatcher: this.#agent,
      signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMs)]),
    })
    const answer = await shortText(body)
    if (statusCode === 200 || statusCode === 204) return answer
    // The rest of the answer may repeat the id of the key.
    const [, code = ''] = /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(answer) ?? []
    throw new Fault('SINK_AWAY', `${url.host} answered ${statusCode} ${code}`.trimEnd())
  }

  /** Of the bucket itself if the key is empty. */
  #urlOf(objectKey: string): URL {
    const { bucket, region, endpoint, isPathStyle } = this.#settings
    const base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
    const key = encodedPath(objectKey)
    const folder = base.pathname.replace(/\/$/, '')
    if (isPathStyle) return new URL(`${base.origin}${folder}/${bucket}/${key}`)
    return new URL(`${base.protocol}//${bucket}.${base.host}${folder}/${key}`)
  }
}

interface FinishedDraft {
  readonly name: string
  readonly path: string
  readonly bodyHash: string
  readonly length: number
}

class S3Draft implements DraftFile {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #put: (file: FinishedDraft) => Promise<void>
  readonly #hash: Hash = createHash('sha256')
  #length = 0

  constructor(path: string, handle: FileHandle, put: (file: FinishedDraft) => Promise<void>) {
    this.#path = path
    this.#handle = handle
    this.#put = put
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes)
    this.#length += bytes.length
    await this.#handle.appendFile(bytes)
  }

  async finish(name: string): Promise<void> {
    const bodyHash = this.#hash.digest('hex')
    await this.#put({ name, path: this.#path, bodyHash, length: this.#length })
    await this.drop()
  }

  async drop(): Promise<void> {
    await this.#handle.close()
    await rm(this.#path, { force: true })
  }
}

/** All of an answer. */
async function shortText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > ANSWER_MAX) throw new Fault('SINK_AWAY', 'the answer is too long')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** The texts of these elements in an answer. */
function textsOf(answer: string, element: string): readonly string[] {
  return insidesOf(answer, element).flatMap((text) =>
    text.includes('<')
      ? []
      : [text.replace(/&(amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-f]{1,6});/gi, (_, name) => characterOf(name))],
  )
}

/** What stands between the tags of these elements. Takes linear time for any answer. */
function insidesOf(answer: string, element: string): readonly string[] {
  const [open, close] = [`<${element}>`, `</${element}>`]
  const found: string[] = []
  for (let at = answer.indexOf(open); at !== -1; ) {
    const start = at + open.length
    const end = answer.indexOf(close, start)
    if (end === -1) break
    found.push(answer.slice(start, end))
    at = answer.indexOf(open, end)
  }
  return found
}

/** Of an entity of XML. */
function characterOf(name: string): string {
  if (!name.startsWith('#')) return ENTITIES[name.toLowerCase()]!
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
  return code > 0x10ffff ? '' : String.fromCodePoint(code)
}

/** For a file of the greatest size over a slow line. */
const TIMEOUT_MS = 120_000
/** A list has up to 1,000 names, each with some hundred characters of other elements. */
const ANSWER_MAX = 4_194_304
const NO_BODY = sha256('')
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
