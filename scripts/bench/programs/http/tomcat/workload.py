# SPDX-License-Identifier: MIT
"""Tomcat: small pages, 32 connections, a pool of threads."""
import os

from driver import loads

HOME = "/usr/share/tomcat10"
NEEDS = f"java ab {HOME}/bin/bootstrap.jar"
SERVLET = "org.apache.catalina.servlets.DefaultServlet"


def prepare(place):
    for folder in "conf", "temp", "logs", "webapps/ROOT":
        os.makedirs(place.file(folder), exist_ok=True)
    place.file("webapps/ROOT/index.html", "hello\n" * 20)
    # Without bindOnInit="false", Tomcat listens long before it answers.
    place.file("conf/server.xml", f"""<Server port="-1"><Service name="Catalina">
<Connector address="127.0.0.1" port="{place.port}" maxThreads="64" maxKeepAliveRequests="-1"
 bindOnInit="false"/>
<Engine name="Catalina" defaultHost="localhost">
<Host name="localhost" appBase="webapps" autoDeploy="false"/>
</Engine></Service></Server>
""")
    place.file("conf/context.xml", """<Context containerSciFilter=".*">
<JarScanner scanClassPath="false" scanManifest="false"/></Context>
""")
    place.file("conf/web.xml", f"""<web-app>
<servlet><servlet-name>default</servlet-name><servlet-class>{SERVLET}</servlet-class></servlet>
<servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
<welcome-file-list><welcome-file>index.html</welcome-file></welcome-file-list>
</web-app>
""")


def server(place, _side):
    return ["java", "-Xmx256m", f"-Dcatalina.home={HOME}", f"-Dcatalina.base={place.work}",
            f"-Djava.io.tmpdir={place.file('temp')}", "-cp",
            f"{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar",
            "org.apache.catalina.startup.Bootstrap", "start"]


def load(place):
    # All sides get equally many requests, because the first ones are slow: Java has not compiled the code yet.
    return loads.ab(place.port, 32, int(5000 * place.seconds), more="-k")
