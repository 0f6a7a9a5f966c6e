# Jupyter reads this file as its settings in the environments that tools/setup_env.py makes: c is its configuration.
from ipykernel.ipkernel import IPythonKernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class Notebooks(AsyncLargeFileManager):
    """Hand out notebooks with the language_info of this kernel.

    JupyterLab writes it into a notebook as the kernel starts. If that changes anything, the tab is marked as unsaved,
    and saved two minutes later, before the reader has touched it. The committed notebooks name no Python version.
    """

    async def get(self, *arguments, **options):
        model = await super().get(*arguments, **options)
        if model["type"] == "notebook" and model["content"]:
            metadata = model["content"]["metadata"]
            if metadata.get("kernelspec", {}).get("name") == "python3":
                metadata["language_info"] = IPythonKernel.language_info
        return model


class Undelayed(ZMQChannelsWebsocketConnection):
    """Send each message of a kernel as soon as it is there.

    By default TCP holds a small packet back until the one before it was acknowledged, which Linux may do 40 ms later.
    The new picture of a slider follows such a packet, so under JupyterHub each step of a slider took that long.
    """

    def connect(self):
        self.websocket_handler.set_nodelay(True)
        return super().connect()


c.ServerApp.kernel_websocket_connection_class = Undelayed  # noqa: F821
c.ServerApp.contents_manager_class = Notebooks  # noqa: F821
