/**
 * `node:http` as Node has it. An import of it gives all of its names their values first, and one of them is a WebSocket
 * client: Node loads all of fetch for it, a tenth of the time in which a proxy starts.
 */
export const { createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http')
