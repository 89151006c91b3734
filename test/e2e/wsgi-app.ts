import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { endWith, heard, plainEnvironment, temporaryFolder } from './programs.ts'

/** An app that gunicorn runs, and that answers with the method and the host that it sees. */
export interface WsgiApp {
  readonly socket: string
  /** What it answers to these bytes. */
  ask(bytes: string): Promise<string>
}

export async function startWsgiApp(t: Test): Promise<WsgiApp> {
  const folder = temporaryFolder(t)
  const socket = join(folder, 'app.sock')
  writeFileSync(join(folder, 'app.py'), APP)
  const child = spawn('gunicorn', ['--bind', `unix:${socket}`, '--chdir', folder, 'app:app'], {
    cwd: folder,
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  await heard(child.stderr, 'Booting worker')
  return {
    socket,
    async ask(bytes) {
      const asking = connect(socket)
      asking.write(bytes)
      return text(asking)
    },
  }
}

const APP = `def app(environ, start_response):
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [' '.join(('the app saw', environ['REQUEST_METHOD'], environ.get('HTTP_HOST', 'no host'))).encode()]
`
