import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { endGroupWith, missing, plainEnvironment, temporaryFolder } from './programs.ts'
import { freePort } from './ports.ts'

/** A server of Debian's with an app that answers with everything it got about the request, as `Told`. */
export interface AppServer {
  readonly name: string
  /** It answers a request with a chunked body: Caddy (2.6) with FastCGI does not. */
  readonly takesChunks: boolean
  /** The missing programs; `false`: everything is installed. */
  isMissing(): string | false
  /** Resolves with its URL when it answers. It ends with the test. */
  start(t: Test): Promise<string>
}

/** By the name that the app reads it by. An app that sees a header in several ways has several names for it. */
export type Told = Readonly<Record<string, string>>

export const APP_SERVERS: readonly AppServer[] = [
  {
    ...{ name: 'lighttpd with CGI', takesChunks: true, start: startLighttpd },
    isMissing: () => missingOf(['lighttpd', 'perl']),
  },
  {
    ...{ name: 'Caddy with PHP-FPM', takesChunks: false, start: startCaddy },
    isMissing: () => missingOf(['caddy', phpFpm()]),
  },
  {
    ...{ name: 'gunicorn with WSGI', takesChunks: true, start: startGunicorn },
    isMissing: () => missingOf(['gunicorn']),
  },
  {
    ...{ name: 'Apache with CGI', takesChunks: true, start: startApache },
    isMissing: () => missingOf(['apache2', 'perl']),
  },
  { name: 'Node', takesChunks: true, start: startNode, isMissing: () => false },
]

/** What a header is called in a CGI, FastCGI or WSGI app, and in Node's. */
export function variablesOf(name: string): readonly string[] {
  const folded = name.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()
  return [`HTTP_${folded}`, folded, name.toLowerCase()]
}

async function startLighttpd(t: Test): Promise<string> {
  const folder = openFolder(t)
  const port = await freePort()
  const config = `
    server.port = ${port}
    server.bind = "127.0.0.1"
    server.document-root = "${folder}"
    server.errorlog = "${folder}/errors"
    server.upload-dirs = ("${folder}")
    server.modules = ("mod_rewrite", "mod_cgi")
    url.rewrite-once = ("" => "/app.pl")
    cgi.assign = (".pl" => "/usr/bin/perl")
  `
  writeFileSync(join(folder, 'app.pl'), CGI_APP)
  writeFileSync(join(folder, 'lighttpd.conf'), config)
  return started(t, folder, port, ['lighttpd', '-D', '-f', join(folder, 'lighttpd.conf')])
}

async function startApache(t: Test): Promise<string> {
  const folder = openFolder(t)
  const port = await freePort()
  // The most lenient it can be: odd names, and trailers that become headers.
  const config = `
    ServerRoot ${folder}
    ServerName localhost
    PidFile ${folder}/pid
    DefaultRuntimeDir ${folder}
    ${APACHE_MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
    ${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
    Listen 127.0.0.1:${port}
    ErrorLog ${folder}/errors
    LogLevel crit
    StartServers 1
    ServerLimit 1
    MaxRequestWorkers 25
    LimitRequestFields 400
    HttpProtocolOptions Unsafe
    MergeTrailers On
    <Directory ${folder}>
      Require all granted
      Options ExecCGI
    </Directory>
    ScriptAliasMatch ^ ${folder}/app.pl
  `
  writeFileSync(join(folder, 'app.pl'), CGI_APP, { mode: 0o755 })
  writeFileSync(join(folder, 'apache.conf'), config)
  return started(t, folder, port, ['apache2', '-f', join(folder, 'apache.conf'), '-DFOREGROUND'])
}

async function startCaddy(t: Test): Promise<string> {
  const folder = openFolder(t)
  const [port, phpPort] = [await freePort(), await freePort()]
  const user = process.getuid?.() === 0 ? 'user = www-data\ngroup = www-data\n' : ''
  writeFileSync(join(folder, 'index.php'), PHP_APP)
  writeFileSync(
    join(folder, 'php-fpm.conf'),
    `[global]\nerror_log = ${folder}/php-errors\ndaemonize = no\n[www]\n${user}listen = 127.0.0.1:${phpPort}\npm = static\npm.max_children = 2\n`,
  )
  const caddyfile = `{
      admin off
      auto_https off
      storage file_system ${folder}/caddy
      log {
        level ERROR
      }
    }
    http://:${port} {
      bind 127.0.0.1
      root * ${folder}
      rewrite * /index.php
      php_fastcgi 127.0.0.1:${phpPort}
    }`
  writeFileSync(join(folder, 'Caddyfile'), caddyfile)
  spawnServer(t, folder, [phpFpm(), '--nodaemonize', '--fpm-config', join(folder, 'php-fpm.conf')])
  const config = join(folder, 'Caddyfile')
  return started(t, folder, port, ['caddy', 'run', '--adapter', 'caddyfile', '--config', config])
}

async function startGunicorn(t: Test): Promise<string> {
  const folder = openFolder(t)
  const port = await freePort()
  writeFileSync(join(folder, 'app.py'), WSGI_APP)
  const argv = ['--bind', `127.0.0.1:${port}`, '--limit-request-fields', '400', '--log-level', 'error']
  return started(t, folder, port, ['gunicorn', ...argv, '--worker-tmp-dir', folder, 'app:app'])
}

async function startNode(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const { method, headers, trailers, rawHeaders, rawTrailers } = request
      const told: Record<string, string> = { REQUEST_METHOD: method! }
      for (const [name, value] of Object.entries({ ...headers, ...trailers })) told[name] = String(value)
      const raw = [...rawHeaders, ...rawTrailers]
      for (let i = 0; i < raw.length; i += 2) told[`raw ${raw[i]}`] = raw[i + 1]!
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(told))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Readable by the users that servers become. */
function openFolder(t: Test): string {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  return folder
}

function spawnServer(t: Test, folder: string, [program, ...argv]: readonly string[]) {
  const stdio = ['ignore', 'ignore', 'pipe'] as const
  const options = { cwd: folder, env: plainEnvironment(folder), detached: true }
  const child = spawn(program!, argv, { ...options, stdio: [...stdio] })
  child.stderr!.setEncoding('utf8').on('data', (text) => {
    SAID.set(child, (SAID.get(child) ?? '') + text)
  })
  endGroupWith(t, child)
  return child
}

async function started(t: Test, folder: string, port: number, command: readonly string[]): Promise<string> {
  const child = spawnServer(t, folder, command)
  const url = `http://127.0.0.1:${port}`
  for (;;) {
    const answer = await fetch(url).catch(() => null)
    if (answer?.ok) return url
    assert.equal(child.exitCode, null, `${command[0]} has ended: ${SAID.get(child)}`)
    await answer?.body?.cancel()
    await wait(20)
  }
}

function phpFpm(): string {
  return globSync('/usr/sbin/php-fpm*').sort().at(-1) ?? 'php-fpm8.2'
}

function missingOf(programs: readonly string[]): string | false {
  for (const program of programs) {
    const reason = missing(program)
    if (reason !== false) return reason
  }
  return false
}

/** What servers have written to stderr, for the message where one does not start. */
const SAID = new WeakMap<ChildProcess, string>()
const APACHE_MODULES = ['mpm_event', 'authz_core', 'alias', 'cgid']

/** Without a shell in between, which would drop variables that it cannot name. */
const CGI_APP = `#!/usr/bin/perl
binmode STDIN; 1 while read(STDIN, my $rest, 65536);
my @pairs;
for my $name (sort keys %ENV) {
  my @texts = ($name, $ENV{$name});
  for (@texts) { s/([\\\\"\\x00-\\x1f\\x7f-\\xff])/sprintf('\\\\u%04x', ord $1)/ge; $_ = qq("$_"); }
  push @pairs, join(':', @texts);
}
print "Content-Type: application/json\\r\\n\\r\\n{", join(',', @pairs), '}';
`
const PHP_APP = `<?php
$told = [];
foreach ([$_SERVER, getenv(), getallheaders()] as $list)
  foreach ($list as $name => $value)
    $told[$name] = is_array($value) ? json_encode($value) : (string) $value;
header('Content-Type: application/json');
echo json_encode($told, JSON_INVALID_UTF8_SUBSTITUTE);
`
const WSGI_APP = `
import json

def app(environ, start_response):
    environ['wsgi.input'].read()
    told = {name: value for name, value in environ.items() if isinstance(value, str)}
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps(told, separators=(',', ':')).encode()]
`
