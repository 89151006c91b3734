import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { Fault } from '../../shared/fault.ts'
import type { DraftFile, FilePlace } from './file-place.ts'
import { type AwsCredentials, encodedPath, signatureHeaders } from './signature-v4.ts'

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

  async close(): Promise<void> {
    this.#closing.abort()
    const agent = this.#agent
    this.#agent = null
    await agent?.destroy()
  }

  async #put({ name, path, bodyHash, length }: FinishedDraft): Promise<void> {
    const { region, ca, credentials, timeoutMs = TIMEOUT_MS } = this.#settings
    const url = this.#urlOf(name)
    const headers = {
      'content-length': String(length),
      'content-type': 'application/vnd.apache.parquet',
      'x-amz-content-sha256': bodyHash,
    }
    const toSign = { method: 'PUT', url, headers, bodyHash }
    const scope = { region, service: 's3', atMs: Date.now() }
    const signature = signatureHeaders(toSign, await credentials(), scope)
    this.#agent ??= new Agent({
      ...(ca === null ? {} : { connect: { ca } }),
      ...{ headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
    })
    const { statusCode, body } = await request(url, {
      method: 'PUT',
      headers: { ...headers, ...signature },
      body: createReadStream(path),
      dispatcher: this.#agent,
      signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMs)]),
    })
    const answer = await shortText(body)
    if (statusCode === 200) return
    // The rest of the answer may repeat the id of the key.
    const [, code = ''] = /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(answer) ?? []
    throw new Fault('SINK_AWAY', `${url.host} answered ${statusCode} ${code}`.trimEnd())
  }

  #urlOf(name: string): URL {
    const { bucket, prefix, region, endpoint, isPathStyle } = this.#settings
    const base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
    const key = encodedPath(`${prefix}${name}`)
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

/** The beginning of an answer, with all of it read. */
async function shortText(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > ANSWER_MAX) throw new Fault('SINK_AWAY', 'the answer is too long')
    text += Buffer.from(piece).toString('latin1')
  }
  return text
}

/** For a file of the greatest size over a slow line. */
const TIMEOUT_MS = 120_000
const ANSWER_MAX = 65_536
