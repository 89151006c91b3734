import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A program that takes TLS on `port` and forwards to the upstream. */
export interface Contender {
  readonly name: string
  /** Why it is not here; `null` when it is. */
  readonly missing: string | null
  start(place: Place, port: number): ChildProcess
}

/** What all of them are given. */
export interface Place {
  readonly folder: string
  readonly certificate: string
  readonly key: string
  readonly upstreamPort: number
  /** On which processor they run. */
  readonly processor: string
}

export const CONTENDERS: readonly Omit<Contender, 'missing'>[] = [
  { name: 'gatehouse', start: startGatehouse },
  { name: 'nginx', start: startNginx },
  { name: 'haproxy', start: startHaproxy },
  { name: 'http-proxy', start: startHttpProxy },
]

/** The app: a small nginx, so that the figures are the proxies'. */
export function startUpstream(folder: string, port: number, processor: string): ChildProcess {
  const file = join(folder, 'upstream.conf')
  writeFileSync(join(folder, 'big'), Buffer.alloc(1024 * 1024, 'x'))
  writeFileSync(
    file,
    `${nginxHead(folder, 'upstream')}
    server { listen 127.0.0.1:${port} reuseport; keepalive_requests 100000000; root ${folder};
      location = / { return 200 "${'a'.repeat(200)}"; } location = /big { } } }`,
  )
  return pinned(processor, 'nginx', ['-p', folder, '-c', file])
}

export async function listening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (open) return
    await sleep(100)
  }
  throw new Error(`nothing listens on ${port}`)
}

function startGatehouse(place: Place, port: number): ChildProcess {
  const program = new URL('../../src/bin.js', import.meta.url).pathname
  const upstream = ['--upstream', `http://127.0.0.1:${place.upstreamPort}`, '--workers', '1']
  const where = [
    '--listen',
    `127.0.0.1:${port}`,
    '--manage',
    '127.0.0.1:0',
    '--data',
    join(place.folder, 'data'),
  ]
  const tls = ['--cert', place.certificate, '--key', place.key]
  return pinned(place.processor, process.execPath, [program, 'proxy', ...upstream, ...where, ...tls])
}

function startNginx(place: Place, port: number): ChildProcess {
  const file = join(place.folder, 'proxy.conf')
  writeFileSync(
    file,
    `${nginxHead(place.folder, 'proxy')}
    upstream app { server 127.0.0.1:${place.upstreamPort}; keepalive 256; keepalive_requests 100000000; }
    server { listen 127.0.0.1:${port} ssl http2; keepalive_requests 100000000; http2_max_requests 100000000;
      ssl_certificate ${place.certificate}; ssl_certificate_key ${place.key}; ssl_protocols TLSv1.2 TLSv1.3;
      ssl_session_cache shared:s:10m; proxy_buffer_size 64k; proxy_buffers 16 64k; proxy_busy_buffers_size 128k;
      location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto https; } } }`,
  )
  return pinned(place.processor, 'nginx', ['-p', place.folder, '-c', file])
}

function startHaproxy(place: Place, port: number): ChildProcess {
  const file = join(place.folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `global
  nbthread 1
  tune.bufsize 65536
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend in
  bind 127.0.0.1:${port} ssl crt ${place.folder}/both.pem alpn h2,http/1.1
  option forwardfor
  default_backend app
backend app
  server app 127.0.0.1:${place.upstreamPort}
`,
  )
  return pinned(place.processor, 'haproxy', ['-f', file])
}

function startHttpProxy(place: Place, port: number): ChildProcess {
  const program = new URL('./http-proxy.ts', import.meta.url).pathname
  const args = [program, String(port), String(place.upstreamPort), place.certificate, place.key]
  return pinned(place.processor, process.execPath, args)
}

function nginxHead(folder: string, name: string): string {
  return `daemon off; worker_processes 1; pid ${folder}/${name}.pid; error_log stderr crit; user root;
  events { worker_connections 4096; }
  http { access_log off; sendfile on; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;`
}

function pinned(processor: string, program: string, args: readonly string[]): ChildProcess {
  return spawn('taskset', ['-c', processor, program, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}
