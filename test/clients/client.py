"""httpx as a client. Reads a list of requests from each line, and writes a line with the answers."""

import asyncio
import hashlib
import json
import sys

import httpx

BASE, CA = sys.argv[1:]


async def main():
    async with httpx.AsyncClient(http2=True, verify=CA, timeout=60, base_url=BASE) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            answers = await asyncio.gather(*(send(client, one) for one in json.loads(line)))
            print(json.dumps(answers), flush=True)


async def send(client, one):
    seen = {"status": 0, "headers": [], "trailers": [], "length": 0, "error": ""}
    hash = hashlib.sha256()
    headers = [tuple(field) for field in one["headers"]]
    try:
        async with client.stream(one["method"], one["path"], headers=headers, content=body_of(one)) as response:
            seen["status"] = response.status_code
            seen["headers"] = response.headers.multi_items()
            async for piece in response.aiter_raw():
                hash.update(piece)
                seen["length"] += len(piece)
                if one["isCut"]:
                    break
                if one["ack"] is not None:
                    await client.get(one["ack"])
    except httpx.HTTPError as error:
        seen["error"] = repr(error)
    return {**seen, "sha256": hash.hexdigest()}


def body_of(one):
    if one["upload"] is None:
        return None
    whole = (bytes(range(251)) * (one["upload"] // 251 + 1))[: one["upload"]]
    return pieces_of(whole) if one["isStreamed"] else whole


async def pieces_of(whole):
    for at in range(0, len(whole), 65536):
        yield whole[at : at + 65536]


asyncio.run(main())
