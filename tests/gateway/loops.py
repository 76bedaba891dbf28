"""An event loop in a thread of its own, ended so that nothing in it is left half done."""

from __future__ import annotations

import asyncio
import threading


def end_loop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Calls off what still waits in it first: what it holds is given back then, and not whenever it is found."""
    asyncio.run_coroutine_threadsafe(_call_off_the_rest(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _call_off_the_rest() -> None:
    waiting = asyncio.all_tasks() - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
