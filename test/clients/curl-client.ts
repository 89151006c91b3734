import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { endWith, plainEnvironment, temporaryFolder } from '../e2e/programs.ts'
import { type Answer, type Ask, type Field, pattern, sha256 } from './ask.ts'

/** curl as a client: one run for each list of requests. */
export function curlClient(t: Test, base: string, caFile: string) {
  const home = temporaryFolder(t)
  const run = async (argv: readonly string[], input: Buffer, heard: (bytes: Buffer) => boolean) => {
    const child = spawn('curl', argv, { env: plainEnvironment(home) })
    endWith(t, child)
    let error = ''
    child.stdin.on('error', () => undefined).end(input)
    child.stderr.on('data', (chunk) => {
      error += chunk
    })
    child.stdout.on('data', (chunk) => {
      if (!heard(chunk)) child.stdout.destroy()
    })
    await once(child, 'close')
    return error
  }
  const common = ['--http2', '--cacert', caFile]
  const send = async (asks: readonly Ask[]): Promise<readonly Answer[]> => {
    const folder = mkdtempSync(join(home, 'files-'))
    const [one] = asks
    const input = one?.upload == null ? Buffer.alloc(0) : pattern(one.upload)
    const isRead = one!.isCut || one!.ack !== null
    const argv = asks.flatMap((each, i) => [
      ...(i > 0 ? ['--next'] : []),
      ...['--no-progress-meter', '-N', ...common, ...argvOf(each), '-D', join(folder, `head${i}`)],
      ...['-o', isRead ? '-' : join(folder, `body${i}`), `${base}${each.path}`],
    ])
    const pieces: Buffer[] = []
    const error = await run(
      [...(asks.length > 1 ? ['-Z', '--no-progress-meter'] : []), ...argv],
      input,
      (bytes) => {
        pieces.push(bytes)
        if (one!.ack !== null) void run([...common, '-sS', `${base}${one!.ack}`], Buffer.alloc(0), () => true)
        return !one!.isCut
      },
    )
    return asks.map((each, i) => {
      const isBodyless = each.method === 'HEAD'
      const body = isRead
        ? Buffer.concat(pieces)
        : isBodyless
          ? Buffer.alloc(0)
          : bodyIn(join(folder, `body${i}`))
      const heads = readFileSync(join(folder, `head${i}`), 'latin1')
        .split('\r\n\r\n')
        .filter(Boolean)
        .map(headIn)
      const head = heads.findLast(({ status }) => status > 0)
      const trailers = heads.findLast(({ status }) => status === 0)
      return {
        ...{ status: head?.status ?? 0, headers: head?.fields ?? [], trailers: trailers?.fields ?? [] },
        ...{ length: body.length, sha256: sha256(body), error },
      }
    })
  }
  return { send, end: () => undefined }
}

function argvOf({ method, headers, upload, isStreamed }: Ask): string[] {
  const cookies = headers.flatMap(([name, value]) => (name === 'cookie' ? [value] : []))
  return [
    ...(method === 'HEAD' ? ['-I'] : ['-X', method]),
    ...(cookies.length > 0 ? ['-b', cookies.join('; ')] : []),
    ...headers.flatMap(([name, value]) => (name === 'cookie' ? [] : ['-H', `${name}: ${value}`])),
    ...(upload === null ? [] : isStreamed ? ['-T', '-'] : ['--data-binary', '@-']),
  ]
}

/** curl makes no file for an empty body. */
function bodyIn(file: string): Buffer {
  return existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
}

function headIn(text: string): { readonly status: number; readonly fields: readonly Field[] } {
  const lines = text.split('\r\n').filter(Boolean)
  const status = Number(/^HTTP\/2 (\d+)/.exec(lines[0]!)?.[1] ?? 0)
  const fields = lines.slice(status > 0 ? 1 : 0).map((line): Field => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  return { status, fields }
}
