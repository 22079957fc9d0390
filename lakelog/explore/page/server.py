"""Serves the page by Voilà: a notebook of one cell, run by a kernel of its own for each visitor."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import tornado.ioloop
import tornado.web
import zmq
from ipykernel.kernelspec import get_kernel_dict
from jinja2 import ChoiceLoader, FileSystemLoader
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_core.utils import run_sync
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from voila.app import Voila
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler
from voila.tornado.handler import TornadoVoilaHandler

from ...base.address import Address
from ...errors import InvalidArgumentError

#: A kernel that nobody is connected to any more ends after so long.
_CULL_S = 600

#: What a template asks other hosts for: its icons, which no page of ours has.
_ELSEWHERE = re.compile(r"<link[^>]*href=\"https://[^>]*>")

#: Where a template's page begins, and what has it be dark in a browser that is.
_BODY = re.compile(r"<body [^>]*data-jp-theme-light=\"true\"[^>]*>")
_AS_THE_BROWSER = """\
<script>
if (matchMedia("(prefers-color-scheme: dark)").matches) {
  document.body.dataset.jpThemeLight = "false";
  const theme = document.querySelector("link[href*='/theme-light.css']");
  if (theme) { theme.href = theme.href.replace(/theme-light.*/, "theme-dark.css"); }
}
</script>
"""


#: Starts a kernel that says nothing here: one that starts while this process ends no longer finds
#: what it needs, and would alarm whoever has just ended it. What a cell raises, the page shows.
_SILENTLY = (
    "import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2);"
    "from ipykernel.kernelapp import launch_new_instance; launch_new_instance()"
)


class _OwnPython(KernelSpecManager):
    """Kernels of this Python, whatever ``python3`` means to this user's Jupyter."""

    is_verbose = False

    def get_kernel_spec(self, kernel_name: str) -> Any:
        own = get_kernel_dict()  # its metadata says whether it can encrypt
        python, *launcher = own["argv"]
        if not self.is_verbose:
            launcher = ["-c", _SILENTLY, *launcher[launcher.index("-m") + 2 :]]
        return KernelSpec(
            argv=[python, *launcher],
            display_name="lakelog",
            language="python",
            metadata=own.get("metadata", {}),
        )

    def find_kernel_specs(self) -> dict[str, str]:
        return {"python3": ""}


class _Page(TornadoVoilaHandler):  # type: ignore[misc]
    """The same page at every path: it shows what the browser tells it to be at."""

    @tornado.web.authenticated
    async def get(self, path: str | None = None) -> None:
        async for html in self.get_generator():
            self.write(_BODY.sub(rf"\g<0>{_AS_THE_BROWSER}", _ELSEWHERE.sub("", html)))
            self.flush()


class _Shutdown(VoilaShutdownKernelHandler):  # type: ignore[misc]
    """A page that is left ends its kernel. Browsers send that without a header of ours."""

    def check_xsrf_cookie(self) -> None:
        """Who sends it is logged in, and knows the kernel's id, which is random."""


class _PageServer(Voila):  # type: ignore[misc]
    """Voilà, at an address of ours.

    Attributes:
        address, serving: where it listens, and what is told when it does.
    """

    address: Address
    serving: Callable[[str, Callable[[], None]], None]

    def init_settings(self) -> Any:
        """Voilà's, with a template of ours before Jupyter's own: ``login.html``."""
        settings: dict[str, Any] = super().init_settings()
        templates = settings["jinja2_env"]
        own = FileSystemLoader(Path(__file__).parent)
        templates.loader = ChoiceLoader([own, templates.loader])
        return settings

    def init_handlers(self) -> Any:
        """Voilà's, with two of ours in the place of its own."""
        ours = {TornadoVoilaHandler: _Page, VoilaShutdownKernelHandler: _Shutdown}
        return [
            (path, ours.get(handler, handler), *more)
            for path, handler, *more in super().init_handlers()
        ]

    def listen(self) -> None:
        """Serves until it is told to stop.

        Raises:
            InvalidArgumentError: it cannot listen there.
        """
        host = self.address.host
        try:
            sockets = bind_sockets(self.address.port, host)
        except OSError as error:
            raise InvalidArgumentError(
                f"the page cannot be served at {self.address}: {error.strerror}. Give another "
                "--listen HOST:PORT",
                value=str(self.address),
            ) from error
        HTTPServer(self.app).add_sockets(sockets)
        self.port = sockets[0].getsockname()[1]
        loop = tornado.ioloop.IOLoop.current()
        self.serving(
            f"http://{Address(host, self.port)}", lambda: loop.add_callback_from_signal(loop.stop)
        )
        try:
            loop.start()
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends the kernels; one that is just starting sees that this process is gone."""
        shutil.rmtree(self.connection_dir, ignore_errors=True)
        for kernel_id in self.kernel_manager.list_kernel_ids():
            with suppress(Exception):  # it has ended, or has not begun
                run_sync(self.kernel_manager.shutdown_kernel)(kernel_id, now=True)


def serve(
    address: Address,
    token: str,
    serving: Callable[[str, Callable[[], None]], None],
    *,
    is_verbose: bool = False,
) -> None:
    """Serves the page until it is told to stop. Call it in the main thread.

    A visitor's kernel runs ``page.ipynb``, which finds the log in this process's environment.

    Args:
        token: who does not give it sees nothing.
        serving: is told the URL, and what stops it, once it listens.

    Raises:
        InvalidArgumentError: it cannot listen there.
    """
    server = _PageServer.instance(
        open_browser=False, token=token, log_level="INFO" if is_verbose else "ERROR"
    )
    server.address, server.serving = address, serving
    server.initialize(
        [
            str(Path(__file__).with_name("page.ipynb")),
            "--VoilaConfiguration.preheat_kernel=True",
            "--VoilaConfiguration.default_pool_size=1",
            "--PasswordIdentityProvider.allow_password_change=False",
            f"--MappingKernelManager.cull_idle_timeout={_CULL_S}",
            # Other users of this machine may connect to a kernel's ports.
            f"--KernelManager.transport_encryption={'auto' if zmq.has('curve') else 'disabled'}",
        ]
    )
    _OwnPython.is_verbose = is_verbose
    server.voila_configuration.kernel_spec_manager_class = _OwnPython
    try:
        server.start()
    finally:
        _PageServer.clear_instance()
