import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { type App, bodyOf, type Route, startApp } from '../e2e/app.ts'
import { pattern } from './ask.ts'

export const LARGE = 2 ** 25
/** Requests at once on one connection. */
export const MANY = 16
export const HELD = 8
export const EVENTS = 5
export const FIELDS = Array.from({ length: 100 }, (_, i) => [`x-field-${i}`, `value ${i * i}`] as const)
/** Compressible. */
export const PAGE = Buffer.from('<p>A page of text.</p>\n'.repeat(5_000))
export const GZIP = gzipSync(PAGE)

export interface ClientsApp extends App {
  readonly pattern: Buffer
  /** Answers that ended before they were whole. */
  readonly cut: number
  /** Requests that wait for `release`. */
  readonly held: number
  release(): void
}

/** An app with an answer of every kind, for a client to ask for. */
export async function startClientsApp(t: Test): Promise<ClientsApp> {
  const large = pattern(LARGE)
  let cut = 0
  let turn = Promise.withResolvers<void>()
  const many = gate()
  const held = gate()
  const routes: Record<string, Route> = {
    '/many': async (request, response) => {
      const waits = many.wait()
      if (many.count === MANY) many.open()
      await waits
      response.end(request.url)
    },
    '/large': (_, response) => {
      response.setHeader('Content-Length', LARGE)
      response.end(large)
    },
    '/upload': async (request, response) => {
      if (request.headers.expect !== undefined) response.writeContinue()
      await bodyOf(request)
      response.end('taken')
    },
    '/too-large': (_, response) => {
      response.writeHead(413, { 'Content-Length': 9 })
      response.end('too large')
    },
    '/events': async (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      for (let i = 0; i < EVENTS; i++) {
        response.write(`data: ${i}\n\n`)
        await turn.promise
      }
      response.end()
    },
    '/next': (_, response) => {
      turn.resolve()
      turn = Promise.withResolvers()
      response.end()
    },
    '/endless': (_, response) => {
      response.on('close', () => cut++)
      response.write('the first of many')
    },
    '/fields': (_, response) => {
      for (const [name, value] of FIELDS) response.appendHeader(name, value)
      response.end('ok')
    },
    '/head': (_, response) => void response.writeHead(200, { 'Content-Length': 1234567 }).end(),
    '/none': (_, response) => void response.writeHead(204, { 'X-None': 'yes' }).end(),
    '/same': (_, response) => void response.writeHead(304, { ETag: '"a"' }).end(),
    '/gzip': (_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': GZIP.length })
      response.end(GZIP)
    },
    '/hints': (_, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload; as=style' })
      response.end('ok')
    },
    '/trailers': async (request, response) => {
      await bodyOf(request)
      response.writeHead(200, { Trailer: 'X-Sum' })
      response.write('the body')
      response.addTrailers({ 'X-Sum': '7' })
      response.end()
    },
    '/hold': async (_, response) => {
      await held.wait()
      response.end(PAGE)
    },
  }
  const app = await startApp(t, routes)
  return {
    ...{ url: app.url, asked: app.asked, pattern: large, release: held.open },
    get cut() {
      return cut
    },
    get held() {
      return held.count
    },
  }
}

/** Holds requests back until it is opened. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  let count = 0
  return {
    get count() {
      return count
    },
    open: resolve,
    wait: () => {
      count++
      return promise
    },
  }
}
