import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A program that takes TLS on `port` and forwards to the upstream. */
export interface Contender {
  readonly name: string
  readonly speaksHttp2: boolean
  /** It differs from another contender in nothing else. */
  readonly isForHttp2Only?: boolean
  /** The app itself, without a proxy or TLS in front of it. */
  readonly isDirect: boolean
  start(place: Place, port: number): ChildProcess | null
}

/** What all of them are given. */
export interface Place {
  readonly folder: string
  readonly certificate: string
  readonly key: string
  readonly appPort: number
  /** On which processor they run. */
  readonly processor: string
  /** Where the load and the app run. */
  readonly loadProcessor: string
}

/** On two processors, with a certificate of its own. */
export function makePlace(folder: string, appPort: number): Place {
  return { folder, ...certificate(folder), appPort, processor: '0', loadProcessor: '1' }
}

export const CONTENDERS: readonly Contender[] = [
  {
    name: 'gatehouse',
    speaksHttp2: true,
    isDirect: false,
    start: (place, port) => startGatehouse(place, port),
  },
  {
    name: 'gatehouse, node:http2',
    speaksHttp2: true,
    isForHttp2Only: true,
    isDirect: false,
    start: (place, port) =>
      startGatehouse({ ...place, folder: join(place.folder, 'node') }, port, {
        env: { GATEHOUSE_PROXY_HTTP2: 'node' },
      }),
  },
  { name: 'nginx', speaksHttp2: true, isDirect: false, start: startNginx },
  { name: 'haproxy', speaksHttp2: true, isDirect: false, start: startHaproxy },
  { name: 'http-proxy', speaksHttp2: false, isDirect: false, start: startHttpProxy },
  { name: 'app, directly', speaksHttp2: false, isDirect: true, start: () => null },
]

/** What is measured; `null` where it is not installed. */
export function version(name: string): string | null {
  if (name.startsWith('gatehouse')) return `Node ${process.versions.node}`
  if (name === 'http-proxy') return `http-proxy ${DEPENDENCIES[name]}`
  if (name === 'app, directly') return 'the app without TLS'
  const program = name.split(',')[0]!
  const { error, stdout, stderr } = spawnSync(program, ['-v'], { encoding: 'utf8' })
  if (error !== undefined) return null
  return `${program} ${/\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0]}`
}

/** What the app has under `/file-BYTES`. */
export const APP_FILE_BYTES: readonly number[] = [1024, 16_384, 65_536, 262_144, 1_048_576, 4_194_304]

/** The app: a small nginx, so that the figures are the proxies'. */
export function startApp({ folder, appPort, loadProcessor }: Place): ChildProcess {
  const file = join(folder, 'app.conf')
  writeFileSync(join(folder, 'big'), Buffer.alloc(1024 * 1024, 'x'))
  for (const bytes of APP_FILE_BYTES) writeFileSync(join(folder, `file-${bytes}`), Buffer.alloc(bytes, 'x'))
  writeFileSync(
    file,
    `${nginxHead(folder, 'app')}
    server { listen 127.0.0.1:${appPort} reuseport; keepalive_requests 100000000; root ${folder};
      location = / { return 200 "${'a'.repeat(200)}"; } location = /big { } location /file- { }
      client_body_buffer_size 2m; # it reads a body because it has to pass something on
      location = /upload { proxy_pass http://127.0.0.1:${appPort}/; proxy_pass_request_body off;
        proxy_method GET; proxy_set_header Content-Length ""; } } }`,
  )
  return pinned(loadProcessor, 'nginx', ['-p', folder, '-c', file])
}

export async function listening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (open) return
    await sleep(100)
  }
  throw new Error(`nothing listens on ${port}`)
}

/** Gatehouse with a worker on each of two processors. */
export const GATEHOUSE_TWO_WORKERS: Contender = {
  name: 'gatehouse, two workers',
  speaksHttp2: true,
  isDirect: false,
  start: (place, port) => {
    const both = `${place.processor},${place.loadProcessor}`
    return startGatehouse({ ...place, folder: join(place.folder, 'two'), processor: both }, port, {
      workers: 2,
    })
  },
}

/** Gatehouse as its image starts it: once, with what was compiled beforehand. */
export const GATEHOUSE_IN_IMAGE: Contender = {
  name: 'gatehouse, as in its image',
  speaksHttp2: true,
  isDirect: false,
  start: (place, port) =>
    startGatehouse({ ...place, folder: join(place.folder, 'image') }, port, {
      env: {
        NODE_OPTIONS: '--max-semi-space-size=16 --v8-pool-size=1',
        NODE_COMPILE_CACHE: join(place.folder, 'compiled'),
      },
    }),
}

/** nginx with as many, for what the machine makes of a second one. */
export const NGINX_TWO_WORKERS: Contender = {
  name: 'nginx, two workers',
  speaksHttp2: true,
  isDirect: false,
  start: (place, port) => {
    const folder = join(place.folder, 'nginx-two')
    mkdirSync(folder)
    return startNginx({ ...place, folder, processor: `${place.processor},${place.loadProcessor}` }, port, 2)
  },
}

/** The version that another folder has built. */
export function earlier(folder: string): Contender {
  return {
    name: 'gatehouse, before',
    speaksHttp2: true,
    isDirect: false,
    start: (place, port) =>
      startGatehouse({ ...place, folder: join(place.folder, 'before') }, port, {
        program: join(folder, 'dist/bin.js'),
      }),
  }
}

export interface GatehouseStart {
  readonly workers?: number
  /** Where it is built. */
  readonly program?: string
  /** For Node, before the program. */
  readonly nodeArgs?: readonly string[]
  /** Behind all others. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export function startGatehouse(place: Place, port: number, start: GatehouseStart = {}): ChildProcess {
  const { workers = 1, program = PROGRAM, nodeArgs = [], args = [], env = {} } = start
  const upstream = ['--upstream', `http://127.0.0.1:${place.appPort}`, '--workers', String(workers)]
  const where = [
    '--listen',
    `127.0.0.1:${port}`,
    '--manage',
    '127.0.0.1:0',
    '--data',
    join(place.folder, 'data'),
  ]
  const tls = ['--cert', place.certificate, '--key', place.key]
  const all = [program, 'proxy', ...upstream, ...where, ...tls, ...args]
  return pinned(place.processor, process.execPath, [...nodeArgs, ...all], env)
}

function startNginx(place: Place, port: number, workers = 1): ChildProcess {
  const file = join(place.folder, 'proxy.conf')
  writeFileSync(
    file,
    `${nginxHead(place.folder, 'proxy', workers)}
    upstream app { server 127.0.0.1:${place.appPort}; keepalive 256; keepalive_requests 100000000; }
    server { listen 127.0.0.1:${port} ssl http2; keepalive_requests 100000000; http2_max_requests 100000000;
      ssl_certificate ${place.certificate}; ssl_certificate_key ${place.key}; ssl_protocols TLSv1.2 TLSv1.3;
      ssl_session_cache shared:s:10m; proxy_buffer_size 64k; proxy_buffers 16 64k; proxy_busy_buffers_size 128k;
      location / { proxy_pass http://app; proxy_http_version 1.1; proxy_request_buffering off; proxy_set_header Connection "";
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
  server app 127.0.0.1:${place.appPort}
`,
  )
  return pinned(place.processor, 'haproxy', ['-f', file])
}

function startHttpProxy(place: Place, port: number): ChildProcess {
  const program = new URL('./http-proxy.ts', import.meta.url).pathname
  const args = [program, String(port), String(place.appPort), place.certificate, place.key]
  return pinned(place.processor, process.execPath, args)
}

function nginxHead(folder: string, name: string, workers = 1): string {
  return `daemon off; worker_processes ${workers}; pid ${folder}/${name}.pid; error_log stderr crit; user root;
  events { worker_connections 4096; }
  http { access_log off; sendfile on; client_max_body_size 0; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;`
}

export function pinned(
  processor: string,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  return spawn('taskset', ['-c', processor, program, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

function certificate(into: string): { certificate: string; key: string } {
  const [file, key] = [join(into, 'cert.pem'), join(into, 'key.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const subject = ['-subj', '/CN=localhost', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', file], {
    stdio: 'ignore',
  })
  writeFileSync(join(into, 'both.pem'), readFileSync(file, 'utf8') + readFileSync(key, 'utf8'))
  return { certificate: file, key }
}

const PACKAGE_FILE = new URL('../../package.json', import.meta.url)
const DEPENDENCIES: Record<string, string> = JSON.parse(readFileSync(PACKAGE_FILE, 'utf8')).devDependencies

const PROGRAM = new URL('../../dist/bin.js', import.meta.url).pathname
