import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import httpProxy from 'http-proxy'

/** The package http-proxy as its users run it, with a keep-alive agent. */
const [port, upstreamPort, certificate, key] = process.argv.slice(2) as [string, string, string, string]
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 })
const proxy = httpProxy.createProxyServer({
  target: { host: '127.0.0.1', port: Number(upstreamPort) },
  agent,
  xfwd: true,
})
proxy.on('error', (_, __, response) => response.destroy())
https
  .createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) =>
    proxy.web(request, response),
  )
  .listen(Number(port), '127.0.0.1')
