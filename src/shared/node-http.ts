/**
 * `node:http` without an import statement. An import evaluates all of its names, including a WebSocket
 * client, for which Node loads all of fetch: a tenth of a proxy's start time.
 */
export const { createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http')
