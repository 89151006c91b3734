import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { plainEnvironment, run } from './programs.ts'

/** Something curl asks through the proxy, to be answered as it is without. */
export interface CurlCase {
  readonly name: string
  readonly path: string
  readonly argv?: readonly string[]
  readonly input?: Buffer
  readonly status: string
}

/** What curl was answered. */
export interface CurlAnswer {
  /** Interim answers too, and trailers as one more head without a status. */
  readonly heads: readonly CurlHead[]
  readonly body: string | Digest
  readonly exitCode: number | null
}

/** Of a body that is not read. */
export interface Digest {
  readonly length: number
  readonly sha256: string
}

export interface CurlHead {
  readonly version: string
  readonly status: string
  readonly reason: string
  readonly headers: readonly (readonly [name: string, value: string])[]
}

export async function curl(
  folder: string,
  argv: readonly string[],
  input?: string | Buffer,
): Promise<CurlAnswer> {
  const [headFile, bodyFile] = [join(folder, 'head'), join(folder, 'body')]
  for (const file of [headFile, bodyFile]) rmSync(file, { force: true })
  const ran = await run('curl', ['-sS', '-D', headFile, '-o', bodyFile, ...argv], {
    env: plainEnvironment(folder),
    ...(input !== undefined && { input }),
  })
  assert.equal(ran.stderr, '')
  return {
    heads: readFileSync(headFile, 'latin1').split('\r\n\r\n').filter(Boolean).map(headIn),
    body: existsSync(bodyFile) ? digested(readFileSync(bodyFile)) : '',
    exitCode: ran.status,
  }
}

function digested(body: Buffer): string | Digest {
  if (body.subarray(0, 5).equals(HEAD_START)) return '' // that is how curl keeps the answer to HEAD
  if (body.length < 200) return body.toString('latin1')
  return { length: body.length, sha256: createHash('sha256').update(body).digest('hex') }
}

function headIn(text: string): CurlHead {
  const lines = text.split('\r\n').filter(Boolean)
  const status = /^HTTP\/(\S+) (\d+) ?(.*)$/.exec(lines[0]!)
  return {
    version: status?.[1] ?? '',
    status: status?.[2] ?? '',
    reason: status?.[3] ?? '',
    headers: (status === null ? lines : lines.slice(1)).map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
    }),
  }
}

const HEAD_START = Buffer.from('HTTP/')
