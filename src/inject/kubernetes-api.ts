import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { Fault } from '../shared/fault.ts'
import { optionalTextAt, mappingAt } from './json-value.ts'

interface ApiPlace {
  readonly host: string
  readonly port: number
  /** Folder of `token`, `ca.crt` and `namespace`: the service account of the Pod. */
  readonly folder: string
}

interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

/** Reads the address from variables that every container has. Throws a Fault outside of a cluster. */
export function apiPlace(env: Readonly<Record<string, string | undefined>>, folder: string): ApiPlace {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = Number(env['KUBERNETES_SERVICE_PORT_HTTPS'] ?? env['KUBERNETES_SERVICE_PORT'])
  if (host !== undefined && host !== '' && Number.isInteger(port) && port >= 1 && port <= 65_535)
    return { host, port, folder }
  throw new Fault(
    'NO_KUBERNETES',
    'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT name no API server; outside of a cluster give inject.tls.cert_file',
  )
}

/**
 * The API server, with the Pod's own service account. Token and CA are read for each request, because the
 * kubelet rotates them and requests are rare.
 */
export class KubernetesApi {
  readonly #place: ApiPlace
  readonly #timeoutMs: number

  constructor(place: ApiPlace, timeoutMs = TIMEOUT_MS) {
    this.#place = place
    this.#timeoutMs = timeoutMs
  }

  async namespace(): Promise<string> {
    return (await this.#read('namespace')).trim()
  }

  get(path: string): Promise<ApiAnswer> {
    return this.#ask('GET', path, null, '')
  }

  create(path: string, object: unknown): Promise<ApiAnswer> {
    return this.#ask('POST', path, object, 'application/json')
  }

  /** The object's `resourceVersion` tells which version it replaces. */
  replace(path: string, object: unknown): Promise<ApiAnswer> {
    return this.#ask('PUT', path, object, 'application/json')
  }

  patch(path: string, patch: unknown): Promise<ApiAnswer> {
    return this.#ask('PATCH', path, patch, 'application/json-patch+json')
  }

  /** Statuses that callers can handle are returned; every other failure is a Fault. */
  async #ask(method: string, path: string, body: unknown, type: string): Promise<ApiAnswer> {
    const [token, ca] = await Promise.all([this.#read('token'), this.#read('ca.crt')])
    try {
      const answer = await this.#send(method, path, { token: token.trim(), ca, type, body })
      if (answer.status < 300 || UNDERSTOOD.has(answer.status)) return answer
      throw new Fault('KUBERNETES_REFUSED', `${method} ${path}: ${answer.status} ${reasonIn(answer)}`)
    } catch (error) {
      if (error instanceof Fault) throw error
      const { name, code, message } = error as NodeJS.ErrnoException
      const why = name === 'AbortError' || name === 'TimeoutError' ? 'no answer in time' : (code ?? message)
      throw new Fault('KUBERNETES_UNREACHABLE', `${method} ${path}: ${why}`, { cause: error })
    }
  }

  async #send(
    method: string,
    path: string,
    { token, ca, type, body }: { token: string; ca: string; type: string; body: unknown },
  ): Promise<ApiAnswer> {
    const { host, port } = this.#place
    const bytes = body === null ? null : Buffer.from(JSON.stringify(body))
    const headers = {
      Accept: 'application/json',
      Authorization: `Bearer ${token}`,
      'User-Agent': 'gatehouse-inject',
      ...(bytes === null ? {} : { 'Content-Type': type, 'Content-Length': bytes.length }),
    }
    const signal = AbortSignal.timeout(this.#timeoutMs)
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({ host, port, method, path, headers, ca, signal, agent: false }, resolve)
      asked.on('error', reject)
      asked.end(bytes ?? undefined)
    })
    const status = response.statusCode!
    const text = await textOf(response)
    return { status, body: jsonIn(text, status) }
  }

  async #read(name: string): Promise<string> {
    const file = join(this.#place.folder, name)
    try {
      return await readFile(file, 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new Fault('SERVICE_ACCOUNT_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
    }
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    if (length > BYTES_MAX)
      throw new Fault('KUBERNETES_REFUSED', `an answer has more than ${BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Proxies in front of an API server answer errors with HTML pages. */
function jsonIn(text: string, status: number): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (status >= 300) return null
    throw new Fault('KUBERNETES_REFUSED', `an answer with status ${status} is not valid JSON`, {
      cause: error,
    })
  }
}

/**
 * The reason in a Status. Its message may quote the request, so it is used only for 401 and 403, where the
 * server has not looked at the body.
 */
function reasonIn({ status, body }: ApiAnswer): string {
  try {
    const said = mappingAt('the answer', body)
    const name = status === 401 || status === 403 ? 'message' : 'reason'
    return (optionalTextAt(name, said.get(name)) ?? '').slice(0, REASON_LENGTH_MAX)
  } catch {
    return ''
  }
}

const TIMEOUT_MS = 10_000
/** A Secret has at most 1 MiB. */
const BYTES_MAX = 4 * 1024 * 1024
const REASON_LENGTH_MAX = 300
/** 404 not found; 409 exists already or has changed; 422 the patch does not apply. */
const UNDERSTOOD = new Set([404, 409, 422])
