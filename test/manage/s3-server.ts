import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Owner } from '../store/databases.ts'

interface Answer {
  readonly status: number
  readonly code: string | null
  readonly list?: string
}

/** How the next uploads end. */
type Mood = 'takes' | 'denies' | 'slows down' | 'resets' | 'hangs'

/**
 * A bucket over S3's protocol. It checks each signature by the steps of AWS's manual, apart from the code in `src`, and keeps
 * an object when all of it has come.
 */
export class S3Server {
  readonly objects = new Map<string, Buffer>()
  /** How often each object was put. */
  readonly puts: string[] = []
  /** The prefixes of lists, a page each. */
  readonly lists: string[] = []
  /** Why uploads were refused. */
  readonly refusals: string[] = []
  mood: Mood = 'takes'
  /** What each page names as the next one. `null`: that which it is. */
  nextPage: string | null = null
  url = ''
  readonly #keys: Readonly<Record<string, string>>

  private constructor(keys: Readonly<Record<string, string>>) {
    this.#keys = keys
  }

  /** `keys`: the secret of each access key. */
  static async start(t: Owner, keys: Readonly<Record<string, string>>): Promise<S3Server> {
    const made = new S3Server(keys)
    const server = createServer((request, response) => {
      const pieces: Buffer[] = []
      if (made.mood === 'resets') return void request.once('data', () => request.socket.resetAndDestroy())
      request.on('data', (piece) => pieces.push(piece))
      request.on('end', () => {
        if (made.mood === 'hangs') return
        const { status, code, list = '' } = made.#answer(request, Buffer.concat(pieces))
        response.writeHead(status, { 'content-type': 'application/xml' })
        response.end(
          code === null ? list : `<Error><Code>${code}</Code><AWSAccessKeyId>AKID</AWSAccessKeyId></Error>`,
        )
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return made
  }

  #answer(request: IncomingMessage, body: Buffer): Answer {
    if (this.mood === 'denies') return { status: 403, code: 'AccessDenied' }
    if (this.mood === 'slows down') return { status: 503, code: 'SlowDown' }
    const fault = this.#faultOf(request, body)
    if (fault !== null) {
      this.refusals.push(fault)
      return { status: 403, code: 'SignatureDoesNotMatch' }
    }
    const { method, url = '' } = request
    if (method === 'GET') return { status: 200, code: null, list: this.#listed(url) }
    if (method === 'DELETE') {
      this.objects.delete(decodeURIComponent(url))
      return { status: 204, code: null }
    }
    this.objects.set(decodeURIComponent(url), body)
    this.puts.push(request.url!)
    return { status: 200, code: null }
  }

  /** ListObjectsV2 (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html), with short pages. */
  #listed(url: string): string {
    const { pathname, searchParams: asked } = new URL(url, 'http://localhost')
    const bucket = `${decodeURIComponent(pathname).replace(/\/$/, '')}/`
    const [prefix, delimiter] = [asked.get('prefix') ?? '', asked.get('delimiter') ?? '']
    const after = Buffer.from(asked.get('continuation-token')?.slice(2) ?? '', 'base64').toString()
    const found = new Map<string, string>()
    for (const path of [...this.objects.keys()].sort()) {
      const key = path.slice(bucket.length)
      if (!path.startsWith(bucket) || !key.startsWith(prefix)) continue
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
      const name = end === -1 ? key : key.slice(0, end + 1)
      if (name > after) found.set(name, end === -1 ? contents(name) : common(name))
    }
    const page = [...found].slice(0, PAGE)
    const more = found.size > PAGE
    const next = Buffer.from(page.at(-1)?.[0] ?? '').toString('base64')
    const named = this.nextPage ?? (more ? `+/${next}` : null)
    const token = named === null ? '' : `<NextContinuationToken>${named}</NextContinuationToken>`
    this.lists.push(prefix)
    return `<ListBucketResult><Prefix>${escaped(prefix)}</Prefix><IsTruncated>${more}</IsTruncated>${token}${page.map(([, text]) => text).join('')}</ListBucketResult>`
  }

  #faultOf({ method, url = '', headers }: IncomingMessage, body: Buffer): string | null {
    const said =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
        headers.authorization ?? '',
      )
    if (said === null) return 'form'
    const [, key, day, region, names, signature] = said as unknown as string[]
    const secret = this.#keys[key!]
    if (secret === undefined) return 'unknown key'
    const time = String(headers['x-amz-date'])
    const at = Date.parse(time.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z'))
    if (!time.startsWith(day!) || !(Math.abs(at - Date.now()) < 900_000)) return 'time'
    const wanted = ['host', 'x-amz-content-sha256', 'x-amz-date']
    if (!wanted.every((name) => names!.split(';').includes(name))) return 'unsigned headers'
    const hash = createHash('sha256').update(body).digest('hex')
    if (headers['x-amz-content-sha256'] !== hash) return 'body'
    const [path = '', query = ''] = url.split('?')
    let canonical = `${method}\n${path}\n${query}\n`
    for (const name of names!.split(';')) canonical += `${name}:${headers[name]}\n`
    canonical += `\n${names}\n${hash}`
    const toSign = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/s3/aws4_request\n${createHash('sha256').update(canonical).digest('hex')}`
    const mac = (with_: Buffer | string, text: string) => createHmac('sha256', with_).update(text).digest()
    const own = mac(mac(mac(mac(mac(`AWS4${secret}`, day!), region!), 's3'), 'aws4_request'), toSign)
    return own.toString('hex') === signature ? null : 'signature'
  }
}

function contents(name: string): string {
  return `<Contents><Key>${escaped(name)}</Key><Size>1</Size></Contents>`
}

function common(name: string): string {
  return `<CommonPrefixes><Prefix>${escaped(name)}</Prefix></CommonPrefixes>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll("'", '&#39;')
}

const PAGE = 2
